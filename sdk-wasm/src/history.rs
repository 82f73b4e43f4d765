//! The conversation in an element of the page: a live region that screen readers follow.
//!
//! It stands in a shadow root, so that no style of the page reaches it but through its parts: `log`, `line` with `user`
//! or `bot` and, until its words are final, `interim`; in a line `role`, `separator` and `text`. It has no styles.

use colloquy_protocol::Originator;
use colloquy_protocol::call::TranscriptLine;
use wasm_bindgen::prelude::*;
use web_sys::{Document, Element, ShadowRootInit, ShadowRootMode, Window};

/// How far from its end a log may be scrolled and still follow the newest line, in CSS pixels.
const FOLLOW_MARGIN_PX: i32 = 24;

/// The log and its lines.
pub(crate) struct History {
    document: Document,
    host: Element,
    log: Element,
    lines: Vec<(String, Element)>,
}

impl History {
    /// Opens an empty log in the element, in place of an earlier call's. The error says why it cannot.
    pub(crate) fn open(target: &JsValue) -> Result<Self, &'static str> {
        let window: Window = js_sys::global().unchecked_into();
        let document = window.document().ok_or("there is no document")?;
        let host = match target.as_string() {
            Some(id) => document.get_element_by_id(&id),
            None => target.dyn_ref::<Element>().cloned(),
        };
        let host = host.ok_or("there is no such element")?;
        let root = match host.shadow_root() {
            Some(root) => root,
            None => host
                .attach_shadow(&ShadowRootInit::new(ShadowRootMode::Open))
                .map_err(|_| "the element takes no shadow root; use a div")?,
        };
        // What else is in a shadow root belongs to the page.
        let shown = root.first_element_child();
        if shown.is_some_and(|shown| shown.get_attribute("part").as_deref() != Some("log")) {
            return Err("the element has a shadow root of its own; use another");
        }
        let log = new_element(&document, "div", "log").ok_or("the log cannot be made")?;
        let name = host.get_attribute("aria-label");
        for (attribute, value) in [
            ("role", "log"),
            ("tabindex", "0"),
            ("aria-label", name.as_deref().unwrap_or("Conversation")),
        ] {
            let _ = log.set_attribute(attribute, value);
        }
        root.replace_children_with_node_1(&log);
        Ok(Self {
            document,
            host,
            log,
            lines: Vec::new(),
        })
    }

    /// Shows a line, in place of the earlier one with its id.
    pub(crate) fn show(&mut self, line: &TranscriptLine) {
        // Either the element of the page or the log within may be the one that scrolls.
        let followed = [&self.host, &self.log].map(is_at_the_end);
        let known = self.lines.iter().position(|(id, _)| *id == line.id);
        let element = match known.and_then(|at| self.lines.get(at)) {
            Some((_, element)) => Some(element.clone()),
            None => self.append(line),
        };
        if let Some(element) = element {
            fill(&element, line);
        }
        for (element, followed) in [&self.host, &self.log].into_iter().zip(followed) {
            if followed {
                element.set_scroll_top(element.scroll_height());
            }
        }
    }

    fn append(&mut self, line: &TranscriptLine) -> Option<Element> {
        let element = self.document.create_element("p").ok()?;
        let children = [
            ("role", line.role.as_str()),
            ("separator", ": "),
            ("text", ""),
        ];
        for (part, text) in children {
            let child = new_element(&self.document, "span", part)?;
            child.set_text_content(Some(text));
            element.append_child(&child).ok()?;
        }
        // The text may have another writing direction than the page.
        let _ = element.last_element_child()?.set_attribute("dir", "auto");
        // A screen reader reads the role together with the text.
        let _ = element.set_attribute("aria-atomic", "true");
        self.log.append_child(&element).ok()?;
        self.lines.push((line.id.clone(), element.clone()));
        Some(element)
    }
}

fn fill(element: &Element, line: &TranscriptLine) {
    let part = match (line.originator, line.is_final) {
        (Originator::User, true) => "line user",
        (Originator::User, false) => "line user interim",
        (Originator::Bot, true) => "line bot",
        (Originator::Bot, false) => "line bot interim",
    };
    let _ = element.set_attribute("part", part);
    // A screen reader reads a line once, when it is final.
    let live = if line.is_final { "polite" } else { "off" };
    let _ = element.set_attribute("aria-live", live);
    if let Some(text) = element.last_element_child() {
        // Always a new text node: the final text often equals the interim one, and screen readers skip unchanged text.
        text.replace_children_with_str_1(&line.text);
    }
    // A line has no text when nothing of it was played; it is hidden then.
    let _ = if line.text.is_empty() {
        element.set_attribute("hidden", "")
    } else {
        element.remove_attribute("hidden")
    };
}

fn new_element(document: &Document, name: &str, part: &str) -> Option<Element> {
    let element = document.create_element(name).ok()?;
    element.set_attribute("part", part).ok()?;
    Some(element)
}

fn is_at_the_end(element: &Element) -> bool {
    element.scroll_height() - element.scroll_top() - element.client_height() <= FOLLOW_MARGIN_PX
}
