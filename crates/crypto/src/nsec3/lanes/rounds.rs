//! The rounds of SHA-1 (FIPS 180-4, section 6.1.2) over vectors, for each instruction set.

/// One round. The caller passes the working variables in the order of their roles in this round; the
/// variable `e` becomes the `a` of the next round.
macro_rules! round {
    ($function:ident, $constant:ident, $word:expr, $a:ident $b:ident $c:ident $d:ident $e:ident) => {
        $e = add(add($e, add($constant, $word)), add(rotate_5($a), $function($b, $c, $d)));
        $b = rotate_30($b);
    };
}

/// Rounds with one function and one constant. The number of words is a multiple of five.
macro_rules! rounds {
    ($function:ident, $constant:literal, $words:expr, $a:ident $b:ident $c:ident $d:ident $e:ident) => {{
        let constant = splat($constant);
        for words in $words.as_chunks::<5>().0 {
            round!($function, constant, words[0], $a $b $c $d $e);
            round!($function, constant, words[1], $e $a $b $c $d);
            round!($function, constant, words[2], $d $e $a $b $c);
            round!($function, constant, words[3], $c $d $e $a $b);
            round!($function, constant, words[4], $b $c $d $e $a);
        }
    }};
}

/// Defines `compress_vectors`, which hashes messages of one block each, `$width` at a time. The module
/// has the functions `splat`, `load`, `store`, `add`, `xor`, `rotate_1`, `rotate_5`, `rotate_30`,
/// `choose`, `parity` and `majority` over vectors of `$width` words.
macro_rules! define_compress {
    ($features:literal, $width:literal) => {
        #[target_feature(enable = $features)]
        fn compress_vectors(message: &[Words; BLOCK_WORDS], hashes: &mut [Words; HASH_WORDS]) {
            for lane in (0..NSEC3_LANES).step_by($width) {
                let mut words = [splat(0); 80];
                for (word, all) in words.iter_mut().zip(message) {
                    *word = load(all, lane);
                }
                for t in BLOCK_WORDS..80 {
                    let odd = xor(words[t - 3], words[t - 8]);
                    words[t] = rotate_1(xor(odd, xor(words[t - 14], words[t - 16])));
                }
                let mut a = splat(SHA1_INITIAL_STATE[0]);
                let mut b = splat(SHA1_INITIAL_STATE[1]);
                let mut c = splat(SHA1_INITIAL_STATE[2]);
                let mut d = splat(SHA1_INITIAL_STATE[3]);
                let mut e = splat(SHA1_INITIAL_STATE[4]);
                rounds!(choose, 0x5a82_7999, words[..20], a b c d e);
                rounds!(parity, 0x6ed9_eba1, words[20..40], a b c d e);
                rounds!(majority, 0x8f1b_bcdc, words[40..60], a b c d e);
                rounds!(parity, 0xca62_c1d6, words[60..], a b c d e);
                for ((result, initial), hash) in [a, b, c, d, e].into_iter().zip(SHA1_INITIAL_STATE).zip(&mut *hashes)
                {
                    store(add(result, splat(initial)), hash, lane);
                }
            }
        }
    };
}

pub(super) use {define_compress, round, rounds};
