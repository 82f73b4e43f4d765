// The entry of the console.

import "./styles/main.css";

import { render } from "preact";

import { beforeReset } from "./api";
import { App, forgetUser } from "./app";
import { keepFocus } from "./ui/focus";
import { allowLeaving } from "./unfinished";

const root = document.getElementById("app");
if (root) {
  keepFocus();
  render(<App />, root);
  beforeReset(() => {
    forgetUser();
    // Nothing asks the user to stay on the page.
    allowLeaving();
    render(null, root);
  });
}
