//! Documents, from their bytes to their Markdown.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod made;
#[cfg(test)]
mod quality;
