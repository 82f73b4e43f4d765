//! Documents, from their bytes to their Markdown.

#[cfg(test)]
mod books;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod comments;
#[cfg(test)]
mod embedded;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod made;
#[cfg(test)]
mod numbers;
#[cfg(test)]
mod office;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod quality;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod templates;
#[cfg(test)]
mod unread;
