//! What serializes, as JavaScript has it: a structure is a plain object, `None` is `null`.
//!
//! It knows the shapes that cross over to the page, and takes a third of the code of `serde-wasm-bindgen`, which keeps every name in a map.

use std::fmt::{self, Display, Formatter};

use js_sys::{Array, Object};
use serde::ser::{self, Impossible, Serialize, SerializeSeq, SerializeStruct};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    type Properties;

    #[wasm_bindgen(method, indexing_setter)]
    fn set(this: &Properties, key: &str, value: JsValue);
}

/// Makes a JavaScript value.
pub(crate) struct Serializer;

/// A shape that nothing here has: a map, a tuple, bytes.
#[derive(Debug)]
pub(crate) struct Unsupported;

impl Display for Unsupported {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("unsupported")
    }
}

impl std::error::Error for Unsupported {}

impl ser::Error for Unsupported {
    fn custom<T: Display>(_message: T) -> Self {
        Self
    }
}

type Serialized = Result<JsValue, Unsupported>;
type Never = Impossible<JsValue, Unsupported>;

/// An object with the one property `key`.
fn object_of(key: &str, value: JsValue) -> JsValue {
    let object = Object::new();
    object.unchecked_ref::<Properties>().set(key, value);
    object.into()
}

macro_rules! as_they_are {
    ($($name:ident($type:ty);)*) => {
        $(fn $name(self, value: $type) -> Serialized {
            Ok(value.into())
        })*
    };
}

macro_rules! unsupported {
    ($($name:ident($($type:ty),*) -> $output:ty;)*) => {
        $(fn $name(self, $(_: $type),*) -> Result<$output, Unsupported> {
            Err(Unsupported)
        })*
    };
}

impl ser::Serializer for Serializer {
    type Ok = JsValue;
    type Error = Unsupported;
    type SerializeSeq = List;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Structure;
    type SerializeStructVariant = Never;

    as_they_are! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_str(&str);
    }

    unsupported! {
        serialize_i64(i64) -> JsValue;
        serialize_u64(u64) -> JsValue;
        serialize_char(char) -> JsValue;
        serialize_bytes(&[u8]) -> JsValue;
        serialize_tuple(usize) -> Never;
        serialize_tuple_struct(&'static str, usize) -> Never;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Never;
        serialize_map(Option<usize>) -> Never;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Never;
    }

    fn serialize_none(self) -> Serialized {
        Ok(JsValue::NULL)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Serialized {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Serialized {
        Ok(JsValue::NULL)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Serialized {
        Ok(JsValue::NULL)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Serialized {
        Ok(variant.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Serialized {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Serialized {
        Ok(object_of(variant, value.serialize(self)?))
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<List, Unsupported> {
        Ok(List(Array::new()))
    }

    fn serialize_struct(
        self,
        _name: &'static str,
        _length: usize,
    ) -> Result<Structure, Unsupported> {
        Ok(Structure(Object::new().unchecked_into()))
    }
}

/// An array that is being filled.
pub(crate) struct List(Array);

impl SerializeSeq for List {
    type Ok = JsValue;
    type Error = Unsupported;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unsupported> {
        self.0.push(&value.serialize(Serializer)?);
        Ok(())
    }

    fn end(self) -> Serialized {
        Ok(self.0.into())
    }
}

/// An object that is being filled.
pub(crate) struct Structure(Properties);

impl SerializeStruct for Structure {
    type Ok = JsValue;
    type Error = Unsupported;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Unsupported> {
        self.0.set(key, value.serialize(Serializer)?);
        Ok(())
    }

    fn end(self) -> Serialized {
        Ok(self.0.into())
    }
}
