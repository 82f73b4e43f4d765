//! What reading a document tells beside its text, and what is missing in it.

use std::io::{Cursor, Write as _};

use test_routes::pdfs::mixed;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;

on_each_database!(what_is_missing_in_a_text_is_told, |database| {
    // A language that nobody has: no text is recognized on pictures.
    let builder =
        builder(&database).config(|config| config.knowledge.ocr_languages = vec!["xyz".to_owned()]);
    let app = start_working(builder).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let made = upload(&app, key, "mixed.pdf", mixed()).await.expect(201);
    let id = made["id"].as_str().unwrap();
    let document = digitized(&app, key, id).await;
    assert_eq!(document["status"], "digitized", "{document}");
    assert_eq!(document["processing_error"], Value::Null);
    assert_eq!(
        document["processing_warning"],
        "no text could be recognized on page 2"
    );
    assert_eq!(document["missing_pages"], json!([2]));
    assert_eq!(document["pages"], 2);
    assert_eq!(document["author"], "Ada Lovelace");
    // Whoever writes the text knows what is in it.
    let content = format!("/api/documents/{BASE}/{id}/content/digitized");
    let written = put(&app, key, &content, &[("content", "Lions sleep.")]).await;
    let written = written.expect(200);
    assert_eq!(written["processing_warning"], Value::Null);
    assert_eq!(written["missing_pages"], json!([]));
    assert_eq!(written["author"], "Ada Lovelace");

    // A language that a document names is that of its words.
    let page = "<html lang='de'><head><title>Tiere</title></head><body><p>Die Löwen schlafen am Tag, und die \
                Bären spielen im Wasser, während die Besucher zusehen.</p></body></html>";
    let form = fields(&[
        ("type", "file"),
        ("folder", "texts"),
        ("use_original_as_rewritten", "true"),
    ]);
    let form = form.part("file", file("tiere.html", page));
    let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
    settled(&app, key).await;
    let path = format!(
        "/api/document/{BASE}/{}",
        made.expect(201)["id"].as_str().unwrap()
    );
    let document = app.get(key, &path).await.expect(200);
    assert_eq!(document["language"], "de", "{document}");
    assert_eq!(document["status"], "ready");
    let found = search(&app, key, "Löwe").await;
    assert_eq!(found["query_languages"], json!(["de"]), "{found}");
    assert_eq!(found["total_results"], 1);
});

/// A workbook with a word, and two formulas whose results are not stored.
fn uncomputed() -> Vec<u8> {
    const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let relation = |kind: &str, target: &str| {
        format!(
            r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="{RELATIONS}/{kind}" Target="{target}"/></Relationships>"#
        )
    };
    let types = r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>"#;
    let workbook = format!(
        r#"<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets><sheet name="Lions" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!(
        r#"<worksheet xmlns="{MAIN}"><sheetData><row><c t="inlineStr"><is><t>Hours asleep</t></is></c><c><f>10*2</f><v></v></c><c><f>24-20</f></c></row></sheetData></worksheet>"#
    );
    let mut zip = ZipWriter::new(Cursor::new(vec![]));
    for (name, content) in [
        ("[Content_Types].xml", types.to_owned()),
        ("_rels/.rels", relation("officeDocument", "xl/workbook.xml")),
        ("xl/workbook.xml", workbook),
        (
            "xl/_rels/workbook.xml.rels",
            relation("worksheet", "worksheets/sheet1.xml"),
        ),
        ("xl/worksheets/sheet1.xml", sheet),
    ] {
        let options = SimpleFileOptions::default();
        zip.start_file(name, options).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

on_each_database!(formulas_without_a_stored_result_are_told, |database| {
    let app = start_working(builder(&database)).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let made = upload(&app, key, "hours.xlsx", uncomputed()).await;
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    let document = digitized(&app, key, id).await;
    assert_eq!(document["status"], "digitized", "{document}");
    assert_eq!(
        document["processing_warning"],
        "2 formulas have no stored result: open and save the file in a spreadsheet program"
    );
    // Whoever writes the text knows what is in it.
    let content = format!("/api/documents/{BASE}/{id}/content/digitized");
    let written = put(&app, key, &content, &[("content", "Lions sleep.")]).await;
    assert_eq!(written.expect(200)["processing_warning"], Value::Null);
});
