//! What programs write over their arguments.

use monitor_ebpf::abi::TitleRecord;
use zerocopy::FromBytes;

use crate::event::Title;

/// Reads a record; `None` if its lengths don't fit.
pub(super) fn title(bytes: &[u8]) -> Option<Title> {
    let (record, data) = TitleRecord::read_from_prefix(bytes).ok()?;
    let text = data.get(..record.title_len as usize)?;
    let is_cut = record.title_len < record.total;
    if record.is_one == 1 {
        // What comes after its end may be anything that stood there before.
        let end = text.iter().position(|byte| *byte == 0);
        return Some(Title {
            words: vec![text[..end.unwrap_or(text.len())].to_vec()],
            is_cut: is_cut && end.is_none(),
        });
    }
    // A title that is shorter than the arguments were is filled up with NULs.
    let end = text
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    Some(Title {
        words: text[..end]
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .collect(),
        is_cut: is_cut && end == text.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn read(text: &[u8], total: u32, is_one: u32) -> Title {
        let record = TitleRecord {
            total,
            title_len: u32::try_from(text.len()).unwrap(),
            is_one,
            ..TitleRecord::default()
        };
        title(&[record.as_bytes(), text].concat()).unwrap()
    }

    fn words(title: &Title) -> Vec<&[u8]> {
        title.words.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn what_fills_up_the_place_of_the_arguments_is_no_part_of_it() {
        let short = read(b"nginx: worker\0\0\0\0", 17, 0);
        assert_eq!(
            (words(&short), short.is_cut),
            (vec![&b"nginx: worker"[..]], false)
        );
        let several = read(b"a\0\0b\0", 5, 0);
        assert_eq!(words(&several), [&b"a"[..], b"", b"b"]);
        let cut = read(b"a\0bc", 900, 0);
        assert_eq!((words(&cut), cut.is_cut), (vec![&b"a"[..], b"bc"], true));
        let not_cut = read(b"a\0\0\0", 900, 0);
        assert_eq!((words(&not_cut), not_cut.is_cut), (vec![&b"a"[..]], false));
    }

    #[test]
    fn one_that_goes_on_ends_at_its_end() {
        let long = read(b"gunicorn: master\0HOME=/root\0", 29, 1);
        assert_eq!(
            (words(&long), long.is_cut),
            (vec![&b"gunicorn: master"[..]], false)
        );
        let longer = read(b"xyz", 700, 1);
        assert_eq!((words(&longer), longer.is_cut), (vec![&b"xyz"[..]], true));
    }

    #[test]
    fn a_length_that_does_not_fit_is_refused() {
        let record = TitleRecord {
            title_len: 5,
            ..TitleRecord::default()
        };
        assert_eq!(title(&[record.as_bytes(), b"abc"].concat()), None);
    }
}
