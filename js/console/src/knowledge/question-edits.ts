// Edits of questions that were not saved.

import { Edits } from "../edits";
import { type QuestionAt, type QuestionEdit, isQuestionChanged, questionKey, questionPath } from "./questions";

export const questionEdits: Edits<QuestionAt, QuestionEdit> = new Edits<QuestionAt, QuestionEdit>({
  keyOf: questionKey,
  isChanged: isQuestionChanged,
  entryOf: ({ at, asked }) => ({
    to: questionPath({ at, asked }),
    name: asked.message,
    part: at.id === null ? "expected documents of a question" : "saved question",
    within: at.base,
  }),
});
