//! PDFs of which a page is a picture.

/// A PDF of two pages: one with text, one that is a picture.
pub fn mixed() -> Vec<u8> {
    pdf(&["3 0 R", "4 0 R"])
}

/// A PDF whose only page is a picture.
pub fn scan() -> Vec<u8> {
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
