//! `#[keys]`: one statement per configuration key.
//!
//! A field of a configuration struct states its key once: the doc comment is the meaning, `#[key(…)]` has the
//! default and the range. The defaults, the range check, the reference, hints and `fedlink config` follow.
//! `fedlink::parts` documents the attribute.

#![forbid(unsafe_code)]

mod range;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, ExprLit, Field, Fields, ItemStruct, Lit, LitStr, Meta, Token, Type};

/// States the keys of a section or of a part, see `fedlink::parts`.
#[proc_macro_attribute]
pub fn keys(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(arguments.into(), syn::parse_macro_input!(item as ItemStruct))
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

/// The statement of a key by a field.
struct Key {
    meaning: String,
    default: Option<Expr>,
    unset: Option<Expr>,
    unset_words: Option<String>,
    derived: Option<String>,
    range: Option<LitStr>,
    allowed: Option<String>,
    max: Option<Expr>,
    is_file: bool,
    is_part: bool,
}

fn expand(arguments: Tokens, mut item: ItemStruct) -> syn::Result<Tokens> {
    let section = section(arguments)?;
    let Fields::Named(fields) = &mut item.fields else {
        return Err(Error::new_spanned(&item, "#[keys] is for a struct with named fields"));
    };
    let (mut entries, mut defaults, mut checks, mut getters) = (vec![], vec![], vec![], vec![]);
    let mut derived = vec![];
    for field in &mut fields.named {
        let name = field.ident.clone().expect("the field has a name");
        if is_skipped(field) {
            defaults.push(quote!(#name: ::core::default::Default::default()));
            continue;
        }
        let key = take_key(field)?;
        let bare = name.to_string();
        let full = section.as_ref().map_or_else(|| bare.clone(), |section| format!("{section}.{bare}"));
        let default = key.default.as_ref().map_or_else(
            || quote!(::core::default::Default::default()),
            |value| if is(&field.ty, "String") { quote!((#value).into()) } else { quote!(#value) },
        );
        defaults.push(quote!(#name: #default));
        let (words, bounds) = words(&key, field)?;
        let (meaning, is_file, is_part) = (&key.meaning, key.is_file, key.is_part);
        entries.push(quote!(::fedlink::parts::Key::of(#full, #meaning, #words, #is_file, #is_part)));
        if let Some(bounds) = bounds {
            checks.push(quote!(::fedlink::parts::Ranged::check(&self.#name, #full, &#bounds)?;));
        }
        if let (Some(value), Some(inner)) = (&key.unset, option(&field.ty)) {
            let doc = format!("`{bare}`, or its value if the key is left out.");
            getters.push(quote! {
                #[doc = #doc]
                pub fn #name(&self) -> #inner { self.#name.clone().unwrap_or(#value) }
            });
        }
        if key.derived.is_some() {
            derived.push(bare.clone());
        }
        add_serde(field, key.derived.is_some());
    }
    let name = &item.ident;
    let getters = if getters.is_empty() { quote!() } else { quote!(impl #name { #(#getters)* }) };
    Ok(quote! {
        #[derive(::fedlink::parts::serde::Serialize, ::fedlink::parts::serde::Deserialize)]
        #[serde(crate = "::fedlink::parts::serde", default, deny_unknown_fields)]
        #item

        impl ::core::default::Default for #name {
            fn default() -> Self { Self { #(#defaults),* } }
        }

        impl ::fedlink::parts::Keys for #name {
            const KEYS: &'static [::fedlink::parts::Key] = &[#(#entries),*];
            const DERIVED: &'static [&'static str] = &[#(#derived),*];

            fn check(&self) -> ::core::result::Result<(), ::fedlink::parts::ConfigError> {
                #(#checks)*
                Ok(())
            }
        }

        #getters
    })
}

/// `section = "radio"`.
fn section(arguments: Tokens) -> syn::Result<Option<String>> {
    if arguments.is_empty() {
        return Ok(None);
    }
    let meta: syn::MetaNameValue = syn::parse2(arguments)?;
    if meta.path.is_ident("section") {
        return text(&meta.value).map(Some);
    }
    Err(Error::new_spanned(meta, "write #[keys] or #[keys(section = \"name\")]"))
}

/// Reads and removes `#[key(…)]`; the doc comment stays.
fn take_key(field: &mut Field) -> syn::Result<Key> {
    let mut key = Key {
        meaning: meaning(&field.attrs)?,
        default: None,
        unset: None,
        unset_words: None,
        derived: None,
        range: None,
        allowed: None,
        max: None,
        is_file: false,
        is_part: false,
    };
    if key.meaning.is_empty() {
        return Err(Error::new_spanned(field, "a key needs a doc comment: its meaning, with its unit"));
    }
    let (own, rest): (Vec<Attribute>, Vec<Attribute>) =
        field.attrs.drain(..).partition(|attribute| attribute.path().is_ident("key"));
    field.attrs = rest;
    for attribute in own {
        for meta in attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)? {
            read(&mut key, meta)?;
        }
    }
    Ok(key)
}

fn read(key: &mut Key, meta: Meta) -> syn::Result<()> {
    let name = meta.path().get_ident().map(ToString::to_string).unwrap_or_default();
    match (name.as_str(), meta) {
        ("default", Meta::NameValue(meta)) => key.default = Some(meta.value),
        ("unset", Meta::NameValue(meta)) => key.unset = Some(meta.value),
        ("unset_words", Meta::NameValue(meta)) => key.unset_words = Some(text(&meta.value)?),
        ("derived", Meta::NameValue(meta)) => key.derived = Some(text(&meta.value)?),
        ("range", Meta::NameValue(meta)) => key.range = Some(literal(&meta.value)?),
        ("allowed", Meta::NameValue(meta)) => key.allowed = Some(text(&meta.value)?),
        ("max", Meta::NameValue(meta)) => key.max = Some(meta.value),
        ("file", Meta::Path(_)) => key.is_file = true,
        ("part", Meta::Path(_)) => key.is_part = true,
        (_, meta) => {
            let known = "default, range, max, allowed, unset, unset_words, derived, file and part";
            return Err(Error::new_spanned(meta, format!("#[key(…)] takes {known}")));
        }
    }
    Ok(())
}

/// The allowed values of the key, in words, and the bounds that are checked.
fn words(key: &Key, field: &Field) -> syn::Result<(String, Option<Tokens>)> {
    let mut words = match (&key.range, &key.allowed) {
        (Some(range), None) => range.value(),
        (None, Some(allowed)) => allowed.clone(),
        (None, None) if is(&field.ty, "bool") => "false | true".into(),
        (None, None) if key.is_part => String::new(),
        _ => {
            let problem = "a key has a range (numbers) or says which values are allowed (others)";
            return Err(Error::new_spanned(field, problem));
        }
    };
    let bounds = match &key.range {
        None => None,
        Some(range) => {
            let bounds =
                range::parse(&range.value()).map_err(|problem| Error::new_spanned(range, problem))?;
            let bound = |bound: Option<(f64, bool)>| match bound {
                None => quote!(::core::option::Option::None),
                Some((value, within)) => quote!(::core::option::Option::Some((#value, #within))),
            };
            let (min, mut max) = (bound(bounds.min), bound(bounds.max));
            if let Some(most) = &key.max {
                max = quote!(::core::option::Option::Some(((#most) as f64, true)));
            }
            let words = range.value();
            Some(quote!(::fedlink::parts::Range { min: #min, max: #max, words: #words }))
        }
    };
    let unset =
        key.unset_words.clone().or_else(|| key.unset.as_ref().map(|value| quote!(#value).to_string()));
    if let Some(unset) = unset {
        if option(&field.ty).is_none() {
            let problem = "only a key of type Option has a value if it is left out; write derived = \"…\"";
            return Err(Error::new_spanned(field, problem));
        }
        words = format!("{words}; if left out: {unset}");
    }
    if let Some(derived) = &key.derived {
        if option(&field.ty).is_some() || key.default.is_some() {
            let problem = "a derived key is a plain value without a default; PartConfig::derive fills it in";
            return Err(Error::new_spanned(field, problem));
        }
        words = format!("{words}; if left out: {derived}");
    }
    Ok((words, bounds))
}

/// Accepts whole numbers written as 1e5, and does not write a key that is not set.
fn add_serde(field: &mut Field, is_derived: bool) {
    if is_derived {
        field.attrs.push(syn::parse_quote!(#[serde(skip_serializing_if = "::fedlink::parts::is_not_set")]));
    }
    let whole = |ty: &Type| is(ty, "u64");
    if whole(&field.ty) {
        field.attrs.push(syn::parse_quote!(#[serde(deserialize_with = "::fedlink::parts::count::count")]));
    }
    let Some(inner) = option(&field.ty) else { return };
    field.attrs.push(syn::parse_quote!(#[serde(skip_serializing_if = "::core::option::Option::is_none")]));
    if whole(inner) {
        field.attrs.push(syn::parse_quote!(#[serde(deserialize_with = "::fedlink::parts::count::optional")]));
    }
}

/// Whether `#[serde(skip)]` marks the field as state and not as a key.
fn is_skipped(field: &Field) -> bool {
    let mut skips = field.attrs.iter().filter(|attribute| attribute.path().is_ident("serde"));
    skips.any(|attribute| attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "skip"))
}

/// The doc comment on one line.
fn meaning(attributes: &[Attribute]) -> syn::Result<String> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let Meta::NameValue(meta) = &attribute.meta {
            lines.push(text(&meta.value)?.trim().to_owned());
        }
    }
    Ok(lines.join(" ").trim().to_owned())
}

fn literal(value: &Expr) -> syn::Result<LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.clone()),
        other => Err(Error::new_spanned(other, "write a text in quotes")),
    }
}

fn text(value: &Expr) -> syn::Result<String> {
    literal(value).map(|text| text.value())
}

fn is(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident(name))
}

/// T of Option<T>.
fn option(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    match &last.arguments {
        syn::PathArguments::AngleBracketed(inner) => match inner.args.first()? {
            syn::GenericArgument::Type(ty) => Some(ty),
            _ => None,
        },
        _ => None,
    }
}
