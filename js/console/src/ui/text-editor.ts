// An editor for Markdown: CodeMirror in a shadow root, where its styles are sheets of scripts, which the policy of the page allows.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { markdownKeymap, markdownLanguage } from "@codemirror/lang-markdown";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { type KeptLineEnds, keepLineEnds } from "./line-ends";

/** Above this length, in UTF-16 units, the text is told of some time after a change: putting it together takes long. */
const LONG = 300_000;
const TELL_MS = 400;

const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--ground)", border: "1px solid var(--edge)", borderRadius: "6px", minHeight: "50vh", maxHeight: "75vh" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { fontFamily: "inherit", lineHeight: "1.6", overflow: "auto" },
  ".cm-content": { padding: "1rem", minHeight: "calc(50vh - 2px)", caretColor: "var(--text)" },
  ".cm-line": { padding: "0", unicodeBidi: "plaintext", textAlign: "start" },
  ".cm-panels": { color: "var(--text)", backgroundColor: "var(--raised)", borderColor: "var(--line)" },
  ".cm-panel.cm-search": { padding: "0.5rem", fontSize: "0.9rem" },
  ".cm-panel.cm-search label": { fontSize: "0.9rem" },
  ".cm-panel.cm-search [name=close]": { fontSize: "1.4rem", color: "var(--text)" },
  ".cm-textfield": { color: "var(--text)", backgroundColor: "var(--ground)", border: "1px solid var(--edge)", borderRadius: "4px", fontSize: "inherit" },
  ".cm-button": { color: "var(--text)", backgroundColor: "var(--ground)", backgroundImage: "none", border: "1px solid var(--edge)", borderRadius: "4px", fontSize: "inherit" },
  ".cm-searchMatch": { backgroundColor: "var(--warn-ground)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--accent-ground)", outline: "1px solid var(--accent)" },
  "@media print": { "&": { border: "0", maxHeight: "none" } },
});

const COLOURS = HighlightStyle.define([
  { tag: tags.heading, fontWeight: "700" },
  { tag: tags.strong, fontWeight: "700" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strikethrough, textDecoration: "line-through" },
  { tag: tags.link, color: "var(--accent)" },
  { tag: tags.url, color: "var(--accent)" },
  { tag: tags.monospace, fontFamily: "ui-monospace, monospace" },
  { tag: tags.quote, color: "var(--dim)" },
  { tag: tags.processingInstruction, color: "var(--dim)" },
]);

export type TextEditorOptions = {
  label: string;
  text: string;
  onText: (text: string) => void;
  /** Gets the position of the cursor. */
  onCursor: (position: number) => void;
};

/** Types over a selection. Browsers would keep the looks of its text by style attributes, which the policy of the page forbids. */
function replaceSelected(event: InputEvent, view: EditorView): boolean {
  const { state } = view;
  if (event.inputType !== "insertText" || event.data === null || event.isComposing || state.readOnly || state.selection.main.empty) return false;
  view.dispatch({ ...state.replaceSelection(event.data), userEvent: "input.type", scrollIntoView: true });
  return true;
}

export class TextEditor {
  readonly #view: EditorView;
  readonly #readOnly = new Compartment();
  readonly #lineEnds: KeptLineEnds;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    host: HTMLElement,
    private readonly options: TextEditorOptions,
  ) {
    const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
    const { label, text, onCursor } = options;
    this.#lineEnds = keepLineEnds(text);
    const extensions = [
      history(),
      search({ top: true }),
      keymap.of([...searchKeymap, ...historyKeymap, ...markdownKeymap, ...defaultKeymap]),
      markdownLanguage.extension,
      syntaxHighlighting(COLOURS),
      THEME,
      EditorView.lineWrapping,
      EditorView.perLineTextDirection.of(true),
      EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
      EditorView.domEventHandlers({ beforeinput: replaceSelected, blur: () => this.flush() }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) this.#changed();
        if (update.docChanged || update.selectionSet) onCursor(update.state.selection.main.head);
      }),
      this.#readOnly.of([]),
      this.#lineEnds.extension,
    ];
    this.#view = new EditorView({ parent: root, root, state: EditorState.create({ doc: text, extensions }) });
  }

  focus(): void {
    this.#view.focus();
  }

  setReadOnly(isReadOnly: boolean): void {
    this.#view.dispatch({ effects: this.#readOnly.reconfigure(EditorState.readOnly.of(isReadOnly)) });
  }

  /** Tells of changes that were not told yet. */
  flush(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#tell();
  }

  close(): void {
    this.flush();
    this.#view.destroy();
  }

  #changed(): void {
    if (this.#view.state.doc.length <= LONG) return this.#tell();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.flush(), TELL_MS);
  }

  #tell(): void {
    this.options.onText(this.#lineEnds.textOf(this.#view.state));
  }
}
