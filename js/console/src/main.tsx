// The entry of the console.

import "./styles/main.css";

import { render } from "preact";

import { beforeReset } from "./api";
import { App, forgetUser } from "./app";

const root = document.getElementById("app");
if (root) {
  render(<App />, root);
  beforeReset(() => {
    forgetUser();
    // Unmounts what would ask the user to stay on the page.
    render(null, root);
  });
}
