//! Routes that describe themselves: an [`axum::Router`] beside the functions that make its OpenAPI description.
//!
//! The description is made when [`DescribedRouter::describe`] is called, not when routes are added: a server that starts keeps one
//! pointer for each part of an operation, and builds no schema.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    convert::Infallible,
    mem,
};

use axum::{
    Router,
    extract::Request,
    handler::Handler,
    response::IntoResponse,
    routing::{MethodFilter, MethodRouter, Route},
};
#[doc(hidden)]
pub use pastey::paste;
use tower::{Layer, Service};
use utoipa::{
    __dev::{SchemaReferences, Tags},
    Path,
    openapi::{HttpMethod, OpenApi, RefOr, Schema, path::Operation},
};

/// Schemas with their names, as utoipa collects them: one schema may be there several times.
type Schemas = Vec<(String, RefOr<Schema>)>;

/// The functions that `#[utoipa::path]` generates for a handler.
struct Description {
    path: fn() -> String,
    methods: fn() -> Vec<HttpMethod>,
    operation: fn() -> Operation,
    tags: fn() -> Vec<&'static str>,
    schemas: fn(&mut Schemas),
}

/// A handler at the path and the methods that its description names; [`routes!`](crate::routes) makes them.
pub struct DescribedRoute<S> {
    description: Description,
    methods: MethodRouter<S>,
}

/// Routes and their descriptions, in a server whose state is `S`.
pub struct DescribedRouter<S> {
    router: Router<S>,
    descriptions: Vec<Description>,
}

impl Description {
    fn of<P: Path + SchemaReferences + Tags<'static>>() -> Self {
        Self {
            path: P::path,
            methods: P::methods,
            operation: P::operation,
            tags: P::tags,
            schemas: P::schemas,
        }
    }

    fn add_to(&self, document: &mut OpenApi) {
        let mut operation = (self.operation)();
        let tags = (self.tags)();
        if !tags.is_empty() {
            let all = operation.tags.get_or_insert_default();
            all.extend(tags.into_iter().map(str::to_owned));
        }
        document
            .paths
            .add_path_operation((self.path)(), (self.methods)(), operation);
        let mut schemas = Schemas::new();
        (self.schemas)(&mut schemas);
        let components = document.components.get_or_insert_default();
        add_schemas(&mut components.schemas, schemas);
    }
}

impl<S: Clone + Send + Sync + 'static> DescribedRoute<S> {
    /// Routes the path and the methods of `P` to a handler. `P` is the type that `#[utoipa::path]` generates for it.
    pub fn new<P, H, T>(_: P, handler: H) -> Self
    where
        P: Path + SchemaReferences + Tags<'static>,
        H: Handler<T, S>,
        T: 'static,
    {
        let mut methods: MethodRouter<S> = MethodRouter::new();
        for method in P::methods() {
            methods = methods.on(filter(&method), handler.clone());
        }
        Self {
            description: Description::of::<P>(),
            methods,
        }
    }
}

impl<S: Clone + Send + Sync + 'static> Default for DescribedRouter<S> {
    fn default() -> Self {
        Self {
            router: Router::new(),
            descriptions: Vec::new(),
        }
    }
}

impl<S: Clone + Send + Sync + 'static> DescribedRouter<S> {
    /// A router without routes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds handlers with their descriptions, which [`routes!`](crate::routes) collects. The methods of one path are merged.
    ///
    /// # Panics
    /// If a path already has a handler for the method.
    #[must_use]
    pub fn routes(mut self, routes: impl IntoIterator<Item = DescribedRoute<S>>) -> Self {
        for route in routes {
            let path = (route.description.path)();
            self.router = self.router.route(&path, route.methods);
            self.descriptions.push(route.description);
        }
        self
    }

    /// Adds a route that the description leaves out.
    ///
    /// # Panics
    /// If the path already has a handler for one of the methods.
    #[must_use]
    pub fn route(mut self, path: &str, methods: MethodRouter<S>) -> Self {
        self.router = self.router.route(path, methods);
        self
    }

    /// Adds the routes of another router, with their descriptions.
    ///
    /// # Panics
    /// If both have a handler for the same path and method.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.descriptions.extend(other.descriptions);
        self
    }

    /// Puts a layer around the routes that are there.
    #[must_use]
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.router = self.router.layer(layer);
        self
    }
}

impl<S> DescribedRouter<S> {
    /// Builds the description: the paths, and the schemas that they refer to.
    ///
    /// # Panics
    /// In debug builds, if two different schemas have the same name.
    #[must_use]
    pub fn describe(&self) -> OpenApi {
        let mut document = OpenApi::default();
        for description in &self.descriptions {
            description.add_to(&mut document);
        }
        document
    }
}

impl<S> From<DescribedRouter<S>> for Router<S> {
    fn from(routes: DescribedRouter<S>) -> Self {
        routes.router
    }
}

/// Adds a description to another.
///
/// # Panics
/// In debug builds, if two different schemas have the same name.
pub fn merge_descriptions(document: &mut OpenApi, mut part: OpenApi) {
    if let Some(components) = &mut part.components {
        let known = document.components.get_or_insert_default();
        add_schemas(&mut known.schemas, mem::take(&mut components.schemas));
    }
    document.merge(part);
}

/// Adds schemas to those that are known. A name stands for one schema: of two, the document would lose one and describe a body
/// wrongly.
fn add_schemas(
    known: &mut BTreeMap<String, RefOr<Schema>>,
    schemas: impl IntoIterator<Item = (String, RefOr<Schema>)>,
) {
    for (name, schema) in schemas {
        match known.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(schema);
            }
            Entry::Occupied(entry) => debug_assert!(
                *entry.get() == schema,
                "`{}` is the name of two schemas",
                entry.key()
            ),
        }
    }
}

fn filter(method: &HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Options => MethodFilter::OPTIONS,
        HttpMethod::Head => MethodFilter::HEAD,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Trace => MethodFilter::TRACE,
    }
}

/// Collects handlers with `#[utoipa::path]`, for [`DescribedRouter::routes`](crate::router::DescribedRouter::routes). A handler is
/// named as it is in scope, alone or behind its modules.
///
/// ```ignore
/// DescribedRouter::new()
///     .routes(routes!(list, create))
///     .routes(routes!(samples::read))
/// ```
#[macro_export]
macro_rules! routes {
    // The type that `#[utoipa::path]` generates beside the handler `a::b` is `a::__path_b`.
    (@description [$($module:ident)*] $handler:ident) => {
        $crate::router::paste! { $($module ::)* [<__path_ $handler>] }
    };
    (@description [$($module:ident)*] $next:ident :: $($rest:tt)+) => {
        $crate::routes!(@description [$($module)* $next] $($rest)+)
    };
    ($($first:ident $(:: $rest:ident)*),+ $(,)?) => {
        [$(
            $crate::router::DescribedRoute::new(
                $crate::routes!(@description [] $first $(:: $rest)*),
                $first $(:: $rest)*,
            )
        ),+]
    };
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;
