use super::*;

/// A file with one tensor of two rows and three columns under `weights`, named `matrix`.
fn file() -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes = vec![b'X'];
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    };
    let mut bytes = [&[0x80, 2, 0x8a, 10], MAGIC.as_slice(), b"."].concat();
    bytes.extend(b"\x80\x02M\xe9\x03.\x80\x02}.");
    // {'step': 1.0, 'weights': OrderedDict(matrix=_rebuild_tensor_v2(storage, 1, (2, 3), (3, 1), False, OrderedDict()))}
    bytes.extend(b"\x80\x02}q\x00(");
    bytes.extend([text("step"), b"G\0\0\0\0\0\0\0\0".to_vec(), text("weights")].concat());
    bytes.extend(b"ccollections\nOrderedDict\nq\x01)Rq\x02(");
    bytes.extend(text("matrix"));
    bytes.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((");
    bytes.extend([text("storage"), b"ctorch\nFloatStorage\n".to_vec()].concat());
    bytes.extend([text("17"), text("cpu"), b"K\x07NtQ".to_vec()].concat());
    bytes.extend(b"K\x01K\x02K\x03\x86K\x03K\x01\x86\x89h\x01)RtRu}bu.");
    bytes.extend([b"\x80\x02](".to_vec(), text("17"), b"e.".to_vec()].concat());
    bytes.extend(7_u64.to_le_bytes());
    bytes.extend((0..7).flat_map(|number| (number as f32).to_le_bytes()));
    bytes
}

fn matrix(file: &[u8]) -> Result<Vec<f32>, InferenceError> {
    Checkpoint::read(file, "weights")?.tensor("matrix", &[2, 3])
}

#[test]
fn tensors_are_read_by_their_names() {
    assert_eq!(matrix(&file()).unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let file = file();
    let checkpoint = Checkpoint::read(&file, "weights").unwrap();
    assert!(checkpoint.tensor("other", &[2, 3]).is_err());
    let shapes: [&[usize]; 4] = [&[3, 2], &[6], &[2, 3, 1], &[]];
    for shape in shapes {
        assert!(checkpoint.tensor("matrix", shape).is_err(), "{shape:?}");
    }
    assert!(Checkpoint::read(&file, "others").is_err());
}

#[test]
fn what_is_cut_off_anywhere_is_refused() {
    let file = file();
    for end in 0..file.len() {
        assert!(matrix(&file[..end]).is_err(), "{end}");
    }
}

#[test]
fn nothing_but_tensors_and_dictionaries_is_called() {
    let mut file = file();
    let at = file
        .windows(11)
        .position(|part| part == b"collections")
        .unwrap();
    file.splice(at..at + 23, *b"posix\nsystem");
    let told = matrix(&file).unwrap_err().to_string();
    assert!(
        told.contains("it calls") && told.contains("posix"),
        "{told}"
    );
}

#[test]
fn fuzzed_files_are_read_or_refused() {
    colloquy_fuzz::fuzz(&[file()], |file| match matrix(file) {
        Ok(numbers) => format!("{} numbers", numbers.len()),
        Err(error) => {
            let told = error.to_string();
            told.chars()
                .filter(|c| !c.is_ascii_digit())
                .take(60)
                .collect()
        }
    });
}
