//! Reads a crate's source into its [`Tree`] of modules. Code that is compiled only for tests is
//! left out.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::modules::{Module, ModulePath, Reference, Tree, folder_of_children};

/// Reads the crate whose root is this file, a path from the repository's root.
pub fn crate_at(root: &Path, file: &Path) -> io::Result<Tree> {
    let mut tree = Tree::default();
    let mut left = Vec::from([(ModulePath::new(), file.to_path_buf())]);
    while let Some((path, file)) = left.pop() {
        let text = fs::read_to_string(root.join(&file))?;
        let folder = folder_of_children(&file);
        for child in add_file(&mut tree, path, &file, &text)? {
            let name = child.last().cloned().unwrap_or_default();
            let flat = folder.join(format!("{name}.rs"));
            let deep = folder.join(name).join("mod.rs");
            left.push((child, if root.join(&flat).exists() { flat } else { deep }));
        }
    }
    Ok(tree)
}

/// Adds the modules of one file. Returns the modules that it declares in files of their own.
pub fn add_file(
    tree: &mut Tree,
    path: ModulePath,
    file: &Path,
    text: &str,
) -> io::Result<Vec<ModulePath>> {
    let invalid = |error: syn::Error| {
        let what = format!("{}:{}: {error}", file.display(), error.span().start().line);
        io::Error::new(io::ErrorKind::InvalidData, what)
    };
    let parsed = syn::parse_file(text).map_err(invalid)?;
    let mut reader = Reader {
        file: file.to_path_buf(),
        path,
        module: Module { file: file.to_path_buf(), ..Module::default() },
        finished: BTreeMap::new(),
        declared: Vec::new(),
    };
    reader.visit_file(&parsed);
    tree.modules.insert(reader.path, reader.module);
    tree.modules.extend(reader.finished);
    Ok(reader.declared)
}

/// Walks through a file. `module` is the current module, and `finished` has the modules between
/// braces that it has left.
struct Reader {
    file: PathBuf,
    path: ModulePath,
    module: Module,
    finished: BTreeMap<ModulePath, Module>,
    declared: Vec<ModulePath>,
}

impl Reader {
    fn refer(&mut self, span: Span, path: Vec<String>) {
        self.module.references.push(Reference { line: span.start().line, path });
    }

    fn define(&mut self, name: &syn::Ident) {
        self.module.items.insert(name.to_string());
    }

    fn define_type(&mut self, name: &syn::Ident) {
        self.define(name);
        self.module.types.push((name.to_string(), name.span().start().line));
    }

    /// Records every name that a `use` brings, with the path that it refers to.
    fn import(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.import(&with(&path.ident), &path.tree),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.import(prefix, item));
            }
            syn::UseTree::Glob(glob) => {
                self.refer(glob.star_token.spans[0], prefix.to_vec());
                self.module.globs.push(prefix.to_vec());
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                self.bring(prefix.last().cloned(), name.ident.span(), prefix.to_vec());
            }
            syn::UseTree::Name(name) => {
                let known_as = Some(name.ident.to_string());
                self.bring(known_as, name.ident.span(), with(&name.ident));
            }
            syn::UseTree::Rename(rename) => {
                let path = match rename.ident == "self" {
                    true => prefix.to_vec(),
                    false => with(&rename.ident),
                };
                let known_as = Some(rename.rename.to_string()).filter(|name| name != "_");
                self.bring(known_as, rename.ident.span(), path);
            }
        }
    }

    fn bring(&mut self, known_as: Option<String>, span: Span, path: Vec<String>) {
        self.refer(span, path.clone());
        // `use serde;` means the crate with that name. As an import it would refer to itself.
        if let Some(name) = known_as.filter(|name| *name != path[0]) {
            self.module.imports.insert(name, path);
        }
    }

    /// The arguments of a macro are not parsed, so their paths are assembled from its tokens.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut began = Span::call_site();
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Ident(name) => {
                    if colons != 2 && !path.is_empty() {
                        self.refer(began, std::mem::take(&mut path));
                    }
                    if path.is_empty() {
                        began = name.span();
                    }
                    path.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            if !path.is_empty() {
                self.refer(began, std::mem::take(&mut path));
            }
            colons = 0;
        }
        if !path.is_empty() {
            self.refer(began, path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        match item {
            syn::Item::Struct(item) => self.define_type(&item.ident),
            syn::Item::Enum(item) => self.define_type(&item.ident),
            syn::Item::Union(item) => self.define_type(&item.ident),
            syn::Item::Trait(item) => self.define_type(&item.ident),
            syn::Item::Type(item) => self.define_type(&item.ident),
            syn::Item::Fn(item) => self.define(&item.sig.ident),
            syn::Item::Const(item) => self.define(&item.ident),
            syn::Item::Static(item) => self.define(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let path = [self.path.as_slice(), &[item.ident.to_string()]].concat();
        let Some((_, items)) = &item.content else {
            self.declared.push(path);
            return;
        };
        let module = Module { file: self.file.clone(), ..Module::default() };
        let outer = std::mem::replace(&mut self.module, module);
        let outer_path = std::mem::replace(&mut self.path, path);
        items.iter().for_each(|item| self.visit_item(item));
        let module = std::mem::replace(&mut self.module, outer);
        let path = std::mem::replace(&mut self.path, outer_path);
        self.finished.insert(path, module);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.to_string());
            self.refer(path.segments[0].ident.span(), names.collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = |list: &syn::MetaList| list.tokens.to_string() == "test";
        attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(is_test)
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::ExternCrate(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::ForeignMod(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
