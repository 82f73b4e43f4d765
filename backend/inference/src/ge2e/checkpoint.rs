//! The weights of a model out of a file that PyTorch wrote before it wrote archives: five pickles one after the other (a magic number, a
//! version, sizes of types, the objects, the keys of the storages), then the numbers of each storage in the order of the keys.
//!
//! A pickle is a program. Here it is read, not run: of what it may call, only what makes tensors and dictionaries is known, and that makes
//! descriptions. Every instruction leaves one item at most and nothing is copied, so what is allocated is bounded by the file.

use std::{collections::HashMap, ops::Range};

use crate::InferenceError;

/// The first pickle.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
/// The second.
const VERSION: i64 = 1001;
/// The bytes of a number.
const FLOAT: usize = size_of::<f32>();

/// Tensors of a file, by their names.
#[derive(Debug)]
pub(super) struct Checkpoint<'a> {
    tensors: HashMap<&'a str, Tensor<'a>>,
    storages: HashMap<&'a str, &'a [u8]>,
}

/// Where the numbers of a tensor are, and how they lie there.
#[derive(Debug, Clone)]
struct Tensor<'a> {
    storage: &'a str,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl<'a> Checkpoint<'a> {
    /// Reads a file whose object is a dictionary that has one of tensors under this name.
    pub(super) fn read(file: &'a [u8], part: &str) -> Result<Self, InferenceError> {
        let mut rest = file;
        let magic = Pickle::read(&mut rest)?;
        if !matches!(magic.root(), Item::Long(bytes) if *bytes == MAGIC) {
            return Err(malformed("it is no file of PyTorch's older format"));
        }
        let version = Pickle::read(&mut rest)?;
        if !matches!(version.root(), Item::Int(VERSION)) {
            return Err(malformed("it has another version"));
        }
        // The sizes of types: those of this format are the same everywhere.
        Pickle::read(&mut rest)?;
        let object = Pickle::read(&mut rest)?;
        let tensors = object.tensors(part)?;
        let mut storages = HashMap::new();
        for key in Pickle::read(&mut rest)?.keys()? {
            let (count, after) = rest.split_first_chunk().ok_or_else(ended)?;
            let bytes = usize::try_from(u64::from_le_bytes(*count)).ok();
            let bytes = bytes.and_then(|count| count.checked_mul(FLOAT));
            let split = bytes.and_then(|bytes| after.split_at_checked(bytes));
            let (numbers, after) = split.ok_or_else(ended)?;
            storages.insert(key, numbers);
            rest = after;
        }
        Ok(Self { tensors, storages })
    }

    /// The numbers of a tensor, which has this shape.
    pub(super) fn tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, InferenceError> {
        let Some(tensor) = self.tensors.get(name) else {
            return Err(InferenceError::Malformed(format!("it has no {name}")));
        };
        let mut strides = vec![1; shape.len()];
        for at in (1..shape.len()).rev() {
            strides[at - 1] = strides[at] * shape[at];
        }
        if tensor.shape != shape || tensor.strides != strides {
            let found = (&tensor.shape, &tensor.strides);
            let message = format!("{name} is {found:?} instead of {shape:?}");
            return Err(InferenceError::Malformed(message));
        }
        let bytes = shape.iter().product::<usize>() * FLOAT;
        let begin = tensor.offset.checked_mul(FLOAT).ok_or_else(ended)?;
        let storage = self.storages.get(tensor.storage).ok_or_else(ended)?;
        let numbers = storage.get(begin..).and_then(|rest| rest.get(..bytes));
        let numbers = numbers.ok_or_else(ended)?.as_chunks::<FLOAT>().0;
        let numbers: Vec<f32> = numbers.iter().map(|it| f32::from_le_bytes(*it)).collect();
        if numbers.iter().any(|number| !number.is_finite()) {
            let message = format!("{name} has what is no number");
            return Err(InferenceError::Malformed(message));
        }
        Ok(numbers)
    }
}

fn malformed(message: &str) -> InferenceError {
    InferenceError::Malformed(message.to_owned())
}

fn ended() -> InferenceError {
    malformed("it is not all of the file")
}

/// An item of a pickle, named by its place in [`Pickle::items`].
type Id = usize;

#[derive(Debug)]
enum Item<'a> {
    Other,
    Int(i64),
    Long(&'a [u8]),
    Text(&'a str),
    /// What can be called: a module and a name.
    Global(&'a str, &'a str),
    /// Items that stand together, in [`Pickle::groups`].
    Tuple(Range<usize>),
    List(Vec<Id>),
    Dictionary(Vec<(Id, Id)>),
    /// Numbers behind the pickles, by their key.
    Storage(&'a str),
    Tensor(Tensor<'a>),
}

/// What a pickle made.
#[derive(Debug, Default)]
struct Pickle<'a> {
    items: Vec<Item<'a>>,
    groups: Vec<Id>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl<'a> Pickle<'a> {
    /// Takes a pickle off a file.
    fn read(rest: &mut &'a [u8]) -> Result<Self, InferenceError> {
        let mut pickle = Self::default();
        while pickle.step(rest)? {}
        match pickle.stack.len() {
            0 => Err(malformed("a part of it is empty")),
            _ => Ok(pickle),
        }
    }

    fn root(&self) -> &Item<'a> {
        self.stack.last().map_or(&Item::Other, |id| self.item(*id))
    }

    fn item(&self, id: Id) -> &Item<'a> {
        self.items.get(id).unwrap_or(&Item::Other)
    }

    fn push(&mut self, item: Item<'a>) {
        self.stack.push(self.items.len());
        self.items.push(item);
    }

    fn pop(&mut self) -> Result<Id, InferenceError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let is_there = self.stack.len() > floor;
        let id = is_there.then(|| self.stack.pop()).flatten();
        id.ok_or_else(|| malformed("it takes what is not there"))
    }

    fn last(&self) -> Result<Id, InferenceError> {
        let id = self.stack.last().copied();
        id.ok_or_else(|| malformed("it takes what is not there"))
    }

    /// What came since the last mark.
    fn since_mark(&mut self) -> Result<Vec<Id>, InferenceError> {
        let mark = self
            .marks
            .pop()
            .ok_or_else(|| malformed("it has no mark"))?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn tuple(&mut self, members: Vec<Id>) {
        let begin = self.groups.len();
        self.groups.extend(members);
        self.push(Item::Tuple(begin..self.groups.len()));
    }

    fn tuple_of(&mut self, count: usize) -> Result<(), InferenceError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let begin = self.stack.len().checked_sub(count);
        let begin = begin.filter(|begin| *begin >= floor);
        let begin = begin.ok_or_else(|| malformed("it takes what is not there"))?;
        let members = self.stack.split_off(begin);
        self.tuple(members);
        Ok(())
    }

    fn set(&mut self, members: &[Id]) -> Result<(), InferenceError> {
        let id = self.last()?;
        let (pairs, odd) = members.as_chunks::<2>();
        match self.items.get_mut(id) {
            Some(Item::Dictionary(entries)) if odd.is_empty() => {
                entries.extend(pairs.iter().map(|[key, value]| (*key, *value)));
                Ok(())
            }
            _ => Err(malformed("it sets something of what is no dictionary")),
        }
    }

    fn append(&mut self, members: &[Id]) -> Result<(), InferenceError> {
        let id = self.last()?;
        match self.items.get_mut(id) {
            Some(Item::List(list)) => {
                list.extend(members);
                Ok(())
            }
            _ => Err(malformed("it appends to what is no list")),
        }
    }

    /// Reads an instruction; `false` after the last.
    fn step(&mut self, rest: &mut &'a [u8]) -> Result<bool, InferenceError> {
        let [instruction] = *take::<1>(rest)?;
        match instruction {
            // The protocol's version.
            0x80 => drop(take::<1>(rest)?),
            b'.' => return Ok(false),
            b'(' => self.marks.push(self.stack.len()),
            b'}' => self.push(Item::Dictionary(Vec::new())),
            b']' => self.push(Item::List(Vec::new())),
            b')' => self.tuple(Vec::new()),
            b'N' | 0x88 | 0x89 => self.push(Item::Other),
            b'G' => {
                take::<8>(rest)?;
                self.push(Item::Other);
            }
            b'K' => {
                let [value] = *take::<1>(rest)?;
                self.push(Item::Int(value.into()));
            }
            b'M' => {
                let value = u16::from_le_bytes(*take(rest)?);
                self.push(Item::Int(value.into()));
            }
            b'J' => {
                let value = i32::from_le_bytes(*take(rest)?);
                self.push(Item::Int(value.into()));
            }
            // A number of any length, in so many bytes.
            0x8a => {
                let [length] = *take::<1>(rest)?;
                let bytes = take_some(rest, length.into())?;
                self.push(Item::Long(bytes));
            }
            b'X' => {
                let length = u32::from_le_bytes(*take(rest)?);
                let text = str::from_utf8(take_some(rest, length as usize)?);
                let text = text.map_err(|_| malformed("a text in it is no UTF-8"))?;
                self.push(Item::Text(text));
            }
            b'c' => {
                let (module, name) = (line(rest)?, line(rest)?);
                self.push(Item::Global(module, name));
            }
            // Remembering the last item under a number, and having it again.
            b'q' => self.remember(u32::from(take::<1>(rest)?[0]))?,
            b'r' => self.remember(u32::from_le_bytes(*take(rest)?))?,
            b'h' => self.recall(u32::from(take::<1>(rest)?[0]))?,
            b'j' => self.recall(u32::from_le_bytes(*take(rest)?))?,
            b't' => {
                let members = self.since_mark()?;
                self.tuple(members);
            }
            0x85 => self.tuple_of(1)?,
            0x86 => self.tuple_of(2)?,
            0x87 => self.tuple_of(3)?,
            b'u' => {
                let members = self.since_mark()?;
                self.set(&members)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])?;
            }
            b'e' => {
                let members = self.since_mark()?;
                self.append(&members)?;
            }
            b'a' => {
                let member = self.pop()?;
                self.append(&[member])?;
            }
            b'Q' => {
                let id = self.pop()?;
                let storage = self.storage(id)?;
                self.push(storage);
            }
            b'R' => {
                let (arguments, called) = (self.pop()?, self.pop()?);
                let made = self.call(called, arguments)?;
                self.push(made);
            }
            // The attributes of an object: of dictionaries that have some, nobody reads them.
            b'b' => drop(self.pop()?),
            other => {
                let message = format!("it has the instruction {other:#x}");
                return Err(InferenceError::Malformed(message));
            }
        }
        Ok(true)
    }

    fn remember(&mut self, number: u32) -> Result<(), InferenceError> {
        let id = self.last()?;
        self.memo.insert(number, id);
        Ok(())
    }

    fn recall(&mut self, number: u32) -> Result<(), InferenceError> {
        let id = self.memo.get(&number).copied();
        let id = id.ok_or_else(|| malformed("it takes what it has not remembered"))?;
        self.stack.push(id);
        Ok(())
    }

    fn members(&self, id: Id) -> &[Id] {
        match self.item(id) {
            Item::Tuple(range) => self.groups.get(range.clone()).unwrap_or_default(),
            _ => &[],
        }
    }

    /// `('storage', kind, key, device, count, view)`.
    fn storage(&self, id: Id) -> Result<Item<'a>, InferenceError> {
        let other = || malformed("it has numbers of another kind than f32");
        let [_, kind, key, ..] = *self.members(id) else {
            return Err(other());
        };
        match (self.item(kind), self.item(key)) {
            (Item::Global("torch", "FloatStorage"), Item::Text(key)) => Ok(Item::Storage(key)),
            _ => Err(other()),
        }
    }

    fn call(&self, called: Id, arguments: Id) -> Result<Item<'a>, InferenceError> {
        let arguments = self.members(arguments);
        match self.item(called) {
            Item::Global("collections", "OrderedDict") if arguments.is_empty() => {
                Ok(Item::Dictionary(Vec::new()))
            }
            // The storage, the offset, the shape, the strides, and what training needs.
            Item::Global("torch._utils", "_rebuild_tensor_v2") => {
                let [storage, offset, shape, strides, ..] = *arguments else {
                    return Err(malformed("a tensor is not all there"));
                };
                let (Item::Storage(storage), Some(offset)) =
                    (self.item(storage), self.size(offset))
                else {
                    return Err(malformed("a tensor has no numbers"));
                };
                Ok(Item::Tensor(Tensor {
                    storage,
                    offset,
                    shape: self.sizes(shape)?,
                    strides: self.sizes(strides)?,
                }))
            }
            other => Err(InferenceError::Malformed(format!("it calls {other:?}"))),
        }
    }

    fn size(&self, id: Id) -> Option<usize> {
        match self.item(id) {
            Item::Int(value) => usize::try_from(*value).ok(),
            _ => None,
        }
    }

    fn sizes(&self, id: Id) -> Result<Vec<usize>, InferenceError> {
        const MOST_DIMENSIONS: usize = 8;
        let members = self.members(id);
        let sizes = members.iter().map(|id| self.size(*id));
        let sizes: Option<Vec<usize>> = sizes.take(MOST_DIMENSIONS + 1).collect();
        let sizes = sizes.filter(|sizes| sizes.len() <= MOST_DIMENSIONS);
        sizes.ok_or_else(|| malformed("a tensor has no shape"))
    }

    /// The tensors of the dictionary that has this name in the dictionary that the pickle made.
    fn tensors(&self, part: &str) -> Result<HashMap<&'a str, Tensor<'a>>, InferenceError> {
        let entries = |item: &Item<'a>| match item {
            Item::Dictionary(entries) => entries.clone(),
            _ => Vec::new(),
        };
        let mut outer = entries(self.root()).into_iter();
        let inner = outer.find(|(key, _)| matches!(self.item(*key), Item::Text(it) if *it == part));
        let Some((_, inner)) = inner else {
            return Err(InferenceError::Malformed(format!("it has no {part}")));
        };
        let tensors = entries(self.item(inner)).into_iter();
        Ok(tensors
            .filter_map(|(key, value)| match (self.item(key), self.item(value)) {
                (Item::Text(name), Item::Tensor(tensor)) => Some((*name, tensor.clone())),
                _ => None,
            })
            .collect())
    }

    /// The texts of the list that the pickle made.
    fn keys(&self) -> Result<Vec<&'a str>, InferenceError> {
        let Item::List(list) = self.root() else {
            return Err(malformed("it does not say which numbers it has"));
        };
        let keys = list.iter().map(|id| match self.item(*id) {
            Item::Text(key) => Ok(*key),
            _ => Err(malformed("it does not say which numbers it has")),
        });
        keys.collect()
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; N], InferenceError> {
    let (taken, after) = rest.split_first_chunk().ok_or_else(ended)?;
    *rest = after;
    Ok(taken)
}

fn take_some<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], InferenceError> {
    let (taken, after) = rest.split_at_checked(count).ok_or_else(ended)?;
    *rest = after;
    Ok(taken)
}

/// A line of text.
fn line<'a>(rest: &mut &'a [u8]) -> Result<&'a str, InferenceError> {
    let end = rest
        .iter()
        .position(|byte| *byte == b'\n')
        .ok_or_else(ended)?;
    let text = str::from_utf8(take_some(rest, end)?);
    take::<1>(rest)?;
    text.map_err(|_| malformed("a name in it is no UTF-8"))
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
