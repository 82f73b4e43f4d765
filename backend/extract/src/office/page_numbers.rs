//! Page numbers in headers and footers, which say nothing in a text: they are left out, and with them the words that belong to them alone.

/// Stands in a line for the number of a page, or for how many there are.
pub(super) const PAGE_NUMBER: char = '\u{1}';

/// Parts a line into what stands on its left, in its middle and on its right.
pub(super) const TAB: char = '\t';

/// Words for a page, and words that stand beside them or between two numbers, by language. Short words that often mean something else are
/// missing: a word too many in the text does less harm than a lost name.
const WORDS: [(&str, &str); 40] = [
    // English.
    ("page pages p pp pg sheet folio", "of out no number total"),
    // German.
    ("seite seiten s blatt", "von nr nummer gesamt insgesamt"),
    // French.
    ("page pages feuille feuillet", "de sur n nº numéro"),
    // Spanish, Catalan and Galician.
    (
        "página páginas pagina pág pag hoja pàgina pàgines pàg páxina páx",
        "de núm número",
    ),
    // Portuguese.
    ("página páginas pág folha", "de"),
    // Italian.
    ("pagina pagine pag foglio", "di su numero"),
    // Dutch and Afrikaans.
    ("pagina blz bladzijde blad bladsy", "van"),
    // Danish and Norwegian.
    ("side sider", "af av"),
    // Swedish.
    ("sida sidan sidor sid blad", "av"),
    // Icelandic.
    ("síða blaðsíða bls", "af"),
    // Finnish.
    ("sivu sivua", "yhteensä"),
    // Estonian.
    ("lehekülg leht", "kokku"),
    // Latvian.
    ("lapa lappuse lpp", "no"),
    // Lithuanian.
    ("puslapis puslapių psl", "iš"),
    // Polish.
    ("strona strony stron str arkusz", "z ze"),
    // Czech and Slovak.
    ("strana stránka stran strán str", "z ze zo celkem celkom"),
    // Slovenian, Croatian, Bosnian and Serbian.
    ("stran stranica strana str страна страница", "od од"),
    // Hungarian.
    ("oldal oldalak", "összesen"),
    // Romanian.
    ("pagina pagină pag", "din"),
    // Albanian.
    ("faqe faqja", "nga"),
    // Greek.
    ("σελίδα σελιδα σελίδες σελ", "από απο"),
    // Bulgarian and Macedonian.
    ("страница страници стр", "от од"),
    // Russian.
    (
        "страница страницы страниц стр с лист листа листов",
        "из всего",
    ),
    // Ukrainian and Belarusian.
    ("сторінка сторінки стор аркуш старонка", "з із"),
    // Kazakh.
    ("бет", ""),
    // Turkish and Azerbaijani.
    ("sayfa sayfası sayfanın səhifə", "toplam"),
    // Basque.
    ("orria orrialdea", ""),
    // Irish and Maltese.
    ("leathanach paġna", "de minn"),
    // Arabic.
    ("صفحة الصفحة صفحات ص", "من رقم"),
    // Persian.
    ("صفحه", "از"),
    // Hebrew.
    ("עמוד עמודים עמ דף", "מתוך"),
    // Hindi.
    ("पृष्ठ", "का"),
    // Thai.
    ("หน้า หน้าที่", "จาก ของ"),
    // Vietnamese.
    ("trang", "trên của"),
    // Indonesian and Malay.
    ("halaman hlm", "dari daripada"),
    // Filipino.
    ("pahina", "ng"),
    // Chinese, whose words may stand together.
    ("第 页 页共 页第 页次 页码", "共 总共"),
    ("頁 頁共 頁第 頁次 頁碼", "總共"),
    // Japanese.
    ("ページ ページ中 ページ目 ﾍﾟｰｼﾞ 頁中 頁目", "全"),
    // Korean.
    ("페이지 쪽", "중 총 전체"),
];

/// Returns a line without the numbers of pages, and without the parts between tabs that say nothing else; an empty text if the whole line
/// says nothing else.
pub(super) fn without_page_numbers(line: &str) -> String {
    if is_page_only(line) {
        return String::new();
    }
    let parts: Vec<&str> = line.split(TAB).filter(|part| !is_page_only(part)).collect();
    let told = parts.join(" ").replace(PAGE_NUMBER, "");
    let words: Vec<&str> = told.split_whitespace().collect();
    words.join(" ")
}

/// True if a text has the number of a page, and no other words than those of [`WORDS`]. A word like "of" or "van" counts only beside a word
/// for a page or between two numbers: elsewhere it may be a name.
fn is_page_only(text: &str) -> bool {
    let numbers = text.matches(PAGE_NUMBER).count();
    let words = || {
        let words = text.split(|one: char| !is_in_word(one));
        words.filter(|word| !word.is_empty()).map(str::to_lowercase)
    };
    numbers > 0
        && words().all(|word| is_page(&word) || is_beside(&word))
        && (numbers > 1 || words().next().is_none() || words().any(|word| is_page(&word)))
}

fn is_page(word: &str) -> bool {
    WORDS.iter().any(|(pages, _)| is_one_of(pages, word))
}

fn is_beside(word: &str) -> bool {
    WORDS.iter().any(|(_, beside)| is_one_of(beside, word))
}

fn is_one_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// True for letters, digits, and the marks of Hindi and Thai letters that are no letters themselves.
fn is_in_word(one: char) -> bool {
    one.is_alphanumeric() || matches!(one, '\u{94D}' | '\u{E47}'..='\u{E4E}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with each `#` as the number of a page.
    fn told(line: &str) -> String {
        without_page_numbers(&line.replace('#', "\u{1}"))
    }

    #[test]
    fn lines_of_page_numbers_are_left_out() {
        for line in [
            "#",
            "- # -",
            "#/#",
            "PAGE # OF #",
            "Page\t#",
            "Page No. #",
            "p.#",
            "Seite # von #",
            "# von #",
            "# / # Seiten",
            "Page n° # sur #",
            "Página # de #",
            "Pàg. #",
            "pagina's: #",
            "Sida # av #",
            "Sid # (#)",
            "Strona # z #",
            "#. oldal, összesen: #",
            "ΣΕΛΙΔΑ # ΑΠΌ #",
            "Стр. # из #",
            "Sayfa # / #",
            "صفحة # من #",
            "עמ' # מתוך #",
            "पृष्ठ # का #",
            "หน้าที่ # จาก #",
            "Trang #\u{a0}/\u{a0}#",
            "第#页，共#页",
            "第 # 頁共 # 頁",
            "全#ページ中#ページ目",
            "# / # 쪽",
        ] {
            assert_eq!(told(line), "", "{line}");
        }
    }

    #[test]
    fn other_words_stay() {
        for (line, expected) in [
            ("Page of nothing", "Page of nothing"),
            ("Acme GmbH – #", "Acme GmbH –"),
            ("Price list #", "Price list"),
            ("東京支店 #", "東京支店"),
            ("目次 #", "目次"),
            ("IBM #", "IBM"),
            ("R2 #", "R2"),
            ("Page # of 9", "Page of 9"),
            // Names, unless there are two numbers.
            ("Van #", "Van"),
            ("DE - #", "DE -"),
            ("Rules, page #", "Rules, page"),
            ("Acme GmbH\t#", "Acme GmbH"),
            ("Acme\tPage # of #\t 2024  b", "Acme 2024 b"),
            ("Seite #\t\tACME", "ACME"),
        ] {
            assert_eq!(told(line), expected, "{line}");
        }
    }

    #[test]
    fn each_word_is_found() {
        for (pages, beside) in WORDS {
            for word in pages.split(' ') {
                assert_eq!(told(&format!("{word} #")), "", "{word}");
            }
            for word in beside.split(' ') {
                assert_eq!(told(&format!("# {word} #")), "", "{word}");
            }
        }
    }
}
