//! FNV-1a with 64 bits, which stands in files and in their names: it is the same in every
//! version. It is against accidents; an enemy could compute any other hash as well.

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

pub fn of(bytes: &[u8]) -> u64 {
    go_on(BASIS, bytes)
}

/// The hash of what was hashed until now, with these bytes behind it.
pub fn go_on(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_its_authors() {
        assert_eq!(of(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(go_on(of(b"foo"), b"bar"), of(b"foobar"));
    }
}
