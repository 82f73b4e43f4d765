//! What reading a document tells beside its text, and what is missing in it.

use super::*;

/// A PDF of two pages: one with text, one that is a picture.
fn mixed() -> Vec<u8> {
    pdf(&["3 0 R", "4 0 R"])
}

/// A PDF whose only page is a picture.
pub(super) fn scan() -> Vec<u8> {
    pdf(&["4 0 R"])
}

/// A PDF with these of two pages.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let text =
        b"BT /F1 18 Tf 72 700 Td (The lions sleep for twenty hours a day in the shade.) Tj ET";
    let picture = b"q 500 0 0 700 50 50 cm /I1 Do Q";
    // Stripes, which are no blank page.
    let pixels: Vec<u8> = (0..64_u32)
        .flat_map(|row| [(row % 2 * 255) as u8; 64])
        .collect();
    let stream = |head: &str, body: &[u8]| {
        let head = format!("<< {head} /Length {} >>\nstream\n", body.len());
        [head.as_bytes(), body, b"\nendstream"].concat()
    };
    let page = |content: u32, resources: &str| {
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {content} 0 R /Resources << {resources} >> >>"
        )
        .into_bytes()
    };
    let objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Lang (en) >>".to_vec(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {} >>",
            pages.join(" "),
            pages.len()
        )
        .into_bytes(),
        page(5, "/Font << /F1 7 0 R >>"),
        page(6, "/XObject << /I1 8 0 R >>"),
        stream("", text),
        stream("", picture),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_vec(),
        stream(
            "/Type /XObject /Subtype /Image /Width 64 /Height 64 /ColorSpace /DeviceGray /BitsPerComponent 8",
            &pixels,
        ),
        b"<< /Author (Ada Lovelace) /Title (Lions) >>".to_vec(),
    ];
    let mut pdf = b"%PDF-1.7\n".to_vec();
    let mut table = String::new();
    for (number, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", pdf.len());
        pdf.extend(format!("{} 0 obj\n", number + 1).bytes());
        pdf.extend(object);
        pdf.extend(b"\nendobj\n");
    }
    let (begin, count) = (pdf.len(), objects.len() + 1);
    let end = format!(
        "xref\n0 {count}\n0000000000 65535 f \n{table}trailer\n<< /Size {count} /Root 1 0 R /Info 9 0 R >>\nstartxref\n{begin}\n%%EOF\n"
    );
    pdf.extend(end.bytes());
    pdf
}

on_both_databases!(
    what_is_missing_in_a_text_is_told,
    // A language that nobody has: no text is recognized on pictures.
    |builder| builder
        .config(|config| config.knowledge.ocr_languages = vec!["xyz".to_owned()])
        .with_decoder()
        .quick_worker(),
    |app| {
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
    }
);

/// A workbook with a word, and two formulas whose results are not stored.
fn uncomputed() -> Vec<u8> {
    use std::io::Write as _;

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
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
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
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(name, options).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn formulas_without_a_stored_result_are_told() {
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let app = builder.with_decoder().quick_worker().start().await;
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
}

/// What could not be embedded later is refused when it is read.
#[tokio::test]
async fn a_text_that_is_too_long_says_so() {
    let app = TestApp::builder(&harness::TestDatabase::sqlite())
        .config(|config| config.knowledge.max_text_bytes = 2_048)
        .with_decoder()
        .quick_worker()
        .start()
        .await;
    let acme = furnished(&app).await;
    let long = "Words of it. ".repeat(200).into_bytes();
    let made = upload(&app, &acme.key, "long.txt", long).await.expect(201);
    let document = digitized(&app, &acme.key, made["id"].as_str().unwrap()).await;
    assert_eq!(document["status"], "failed", "{document}");
    let error = document["processing_error"].as_str().unwrap();
    assert!(
        error.starts_with("the document is too large: more than 2048"),
        "{error}"
    );
}
