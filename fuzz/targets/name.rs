//! Names: conversion from text to wire form and back, reading from messages, and the two
//! implementations of the canonical order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_proto::{MAX_NAME, Name, NameRef};

fuzz_target!(|data: &[u8]| {
    let relative = Name::from_text(data, None);
    let completed = Name::from_text(data, Some(NameRef::ROOT));
    if let (Ok(name), Ok(same)) = (&relative, &completed) {
        assert_eq!(name.wire(), same.wire());
    }
    for name in [relative, completed].iter().flatten() {
        check(name);
    }
    // The first octet is the offset at which two names begin in the rest, which is read as a
    // message.
    let Some((&at, message)) = data.split_first() else { return };
    let Ok((first, end)) = Name::from_message(message, usize::from(at)) else { return };
    check(&first);
    assert!(end <= message.len());
    let Ok((second, _)) = Name::from_message(message, end) else { return };
    check(&second);
    check_order(first.view(), second.view());
});

/// Checks that reading each form of a name gives the same name.
fn check(name: &Name) {
    let wire = name.wire();
    assert!(wire.len() <= MAX_NAME);
    match NameRef::from_wire(wire) {
        Ok(same) => assert_eq!(same.wire(), wire),
        Err(error) => panic!("{name}: {error}"),
    }
    let text = name.to_string();
    match Name::from_text(text.as_bytes(), None) {
        Ok(same) => assert_eq!(same.wire(), wire, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
    match Name::from_message(wire, 0) {
        Ok((same, end)) => assert_eq!((same.wire(), end), (wire, wire.len())),
        Err(error) => panic!("{name}: {error}"),
    }
    let canonical = name.view().to_canonical();
    assert_eq!(canonical.view().to_canonical().wire(), canonical.wire());
    assert!(*name == canonical && name.view().is_at_or_below(canonical.view()));
    let labels = name.view().labels();
    assert_eq!(labels.map(|label| 1 + label.len()).sum::<usize>() + 1, wire.len());
}

/// RFC 4034 §6.1: sort keys, comparison and equality are consistent.
fn check_order(a: NameRef<'_>, b: NameRef<'_>) {
    let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
    a.push_sort_key(&mut key_a);
    b.push_sort_key(&mut key_b);
    assert_eq!(key_a.cmp(&key_b), a.cmp_canonical(b), "{a} and {b}");
    assert_eq!(a.cmp_canonical(b), b.cmp_canonical(a).reverse());
    assert_eq!(a.cmp_canonical(b).is_eq(), a == b);
    assert_eq!(key_b.starts_with(&key_a), b.is_at_or_below(a), "{b} below {a}");
}
