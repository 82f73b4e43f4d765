// The questions that were typed in this page and not searched for. They survive navigation inside the console, and end with the session.

import { effect } from "@preact/signals";

import { sessions } from "../api";
import { QuestionDrafts } from "./question-drafts";

export const typedQuestions = new QuestionDrafts();

effect(() => {
  if (!sessions.current.value) typedQuestions.clear();
});
