//! Prices, which share words with many questions that do not ask for them: "Parking costs $5" says nothing of where it is.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;

use super::{
    intent,
    kinds::{Kind, asks_for_steps},
};

/// An amount of money: its sign or its name is part of it. Pounds are left out, which may be a weight.
static PRICE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let amount = r"\d(?:[\d.,]*\d)?";
    let names = "usd|eur|gbp|chf|dollars?|euros?|francs?|francos?|franken|yen|rupees?|cents?|pence";
    // The test reads it.
    let pattern = format!(r"(?i)[$€£¥₹]\s?{amount}|\b{amount}\s?(?:[$€£¥₹]|(?:{names})\b)");
    Regex::new(&pattern).ok()
});

/// Words of questions for a price.
const ASKING: &[&str] = &[
    "admission",
    "afford",
    "amount",
    "buy",
    "charge",
    "charges",
    "cheap",
    "cheaper",
    "cheapest",
    "cost",
    "costs",
    "discount",
    "discounts",
    "dollar",
    "dollars",
    "euro",
    "euros",
    "expensive",
    "fare",
    "fares",
    "fee",
    "fees",
    "free",
    "money",
    "much",
    "pay",
    "price",
    "priced",
    "prices",
    "pricing",
    "rate",
    "rates",
    "ticket",
    "tickets",
    "worth",
    "kosten",
    "kostet",
    "preis",
    "preise",
    "teuer",
    "viel",
    "cuesta",
    "cuestan",
    "cuánto",
    "precio",
    "precios",
    "combien",
    "coûte",
    "coûtent",
    "prix",
    "tarif",
    "tarifs",
    "costa",
    "costano",
    "prezzi",
    "prezzo",
    "quanto",
    "custa",
    "custam",
    "preço",
    "preços",
    "kost",
    "prijs",
    "prijzen",
    "kosztuje",
    "ile",
    "cena",
    "ceny",
];

/// What a question asks for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    /// By its question word.
    pub(super) kind: Option<Kind>,
    /// A price may answer it.
    price: bool,
    /// The steps of an instruction answer it, all of them.
    pub(super) steps: bool,
}

impl Asked {
    pub(super) fn of(said: &str) -> Self {
        Self {
            kind: Kind::of(said),
            price: asks_for_price(said),
            steps: asks_for_steps(said),
        }
    }

    /// What a question asks for that goes on from what was said before: "And for children?"
    pub(super) fn after(self, said_before: &str) -> Self {
        Self {
            price: self.price || asks_for_price(said_before),
            ..self
        }
    }

    /// What a question asks for where everything that stands in a place answers it, of whatever kind.
    pub(super) fn of_any_kind(self) -> Self {
        Self { kind: None, ..self }
    }

    /// Returns true if a sentence holds what the question word asks for. Prices are no numbers where none is asked for.
    pub(super) fn fits(self, sentence: &str) -> bool {
        let said = match self.price {
            true => Cow::Borrowed(sentence),
            false => without_prices(sentence),
        };
        self.kind.is_some_and(|kind| kind.fits(&said))
    }

    /// Returns true if a sentence has a price where a time or a place was asked for, and has neither. Other questions may be answered by a
    /// price without a word for one ("Is there a withdrawal limit?").
    pub(super) fn has_other_price(self, sentence: &str) -> bool {
        let is_other = matches!(self.kind, Some(Kind::Time | Kind::Place));
        is_other && !self.price && has_price(sentence) && !self.fits(sentence)
    }
}

fn asks_for_price(said: &str) -> bool {
    let plain = intent::plain(said);
    let mut words = plain.split_whitespace();
    words.any(|word| ASKING.contains(&word)) || has_price(said)
}

fn has_price(text: &str) -> bool {
    matches!(&*PRICE, Some(price) if price.is_match(text))
}

fn without_prices(text: &str) -> Cow<'_, str> {
    match &*PRICE {
        Some(price) => price.replace_all(text, ""),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_told_from_other_numbers() {
        for (text, rest) in [
            ("Entry: $20.50, or €5", "Entry: , or "),
            ("It is 12 EUR a day", "It is  a day"),
            ("Only 1,200 dollars", "Only "),
            ("Um 9 Uhr für 5€", "Um 9 Uhr für "),
            (
                "We open at 9 and have 40 lions",
                "We open at 9 and have 40 lions",
            ),
            ("Dogs up to 20 pounds", "Dogs up to 20 pounds"),
        ] {
            assert_eq!(without_prices(text), rest);
            assert_eq!(has_price(text), rest != text, "{text}");
        }
    }

    #[test]
    fn a_price_answers_who_asks_for_one() {
        const PRICE: &str = "The tour of the cellar costs $20.";
        for (question, has_other) in [
            ("When is the tour of the cellar?", true),
            ("How do I find the cellar?", false),
            ("What if I miss the tour?", false),
            ("May I join the tour?", false),
            ("Was ist mit der Kellerführung?", false),
            ("What does the tour cost?", false),
            ("How much is it?", false),
            ("Is the tour free?", false),
            ("Can I get one for 10 euros?", false),
        ] {
            assert_eq!(
                Asked::of(question).has_other_price(PRICE),
                has_other,
                "{question}"
            );
        }
        let children = Asked::of("And when for children?");
        assert!(children.has_other_price(PRICE));
        assert!(
            !children
                .after("What does the tour cost?")
                .has_other_price(PRICE)
        );
        let when = Asked::of("When is the tour?");
        assert!(!when.fits(PRICE));
        let limit = Asked::of("What is the withdrawal limit?");
        assert!(!limit.has_other_price("The withdrawal limit is $500 a day."));
        let both = "The tour is at 9 and costs $20.";
        assert!(when.fits(both) && !when.has_other_price(both));
    }
}
