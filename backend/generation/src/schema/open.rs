//! Unions that are open: kinds that are described, and others, which pass as they are.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Something of another type, which models may know.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OtherType {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it says.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// One of the described kinds, else an [`OtherType`]. The derived description of such an enum would be `oneOf`, which a value
/// of a described kind fails, since it is of some type, too.
macro_rules! open_union {
    ($(#[doc = $doc:literal])+ $name:ident: $($known:ident),+) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[serde(untagged)]
        pub enum $name {
            $(
                /// One that is described.
                $known($known),
            )+
            /// One of another type, which models may know.
            Other($crate::schema::open::OtherType),
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                use utoipa::openapi::{Ref, Schema, schema::AnyOfBuilder};
                let known = |name: std::borrow::Cow<'static, str>| Ref::from_schema_name(name);
                let union = AnyOfBuilder::new()
                    .description(Some(concat!($($doc),+).trim()))
                    $(.item(known(<$known as utoipa::ToSchema>::name())))+
                    .item(known(
                        <$crate::schema::open::OtherType as utoipa::ToSchema>::name(),
                    ));
                Schema::from(union).into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn schemas(
                schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>,
            ) {
                use $crate::schema::open::with_schema;
                $(with_schema::<$known>(schemas);)+
                with_schema::<$crate::schema::open::OtherType>(schemas);
            }
        }
    };
}
pub(super) use open_union;

/// Adds the description of a type and of those in it.
pub(super) fn with_schema<T: ToSchema>(
    schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>,
) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}
