//! Names and arguments, byte by byte.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use rtrace_tests::{harness, lone_surrogates::Text, victims::victim};

#[test]
fn the_last_name_of_the_leader_is_the_process_name() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let command: [OsString; 2] = [victim("actor").into(), "names".into()];
    let report = harness::record(&command)?.complete_report()?;
    let child = report.only_child()?;
    assert_eq!(
        child.comm,
        Some(Text(b"b\xffyte \xe2\x82\xac name".to_vec()))
    );
    assert_eq!(
        child.image()?.comm,
        Some(Text::from("actor")),
        "the image's name is the one it began with"
    );
    assert_eq!(report.root()?.comm, Some(Text::from("actor")));
    Ok(())
}

#[test]
fn arguments_keep_every_byte() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    let every_byte: Vec<u8> = (1..=255).collect();
    let arguments: [&[u8]; 6] = [
        b"/bin/true",
        b"",
        b"two words",
        &every_byte,
        b"line\nfeed",
        b"",
    ];
    let command = arguments.map(|argument| OsString::from_vec(argument.to_vec()));
    let report = harness::record(&command)?.complete_report()?;
    let image = report.root()?.image()?;
    assert_eq!(image.argv, Some(arguments.map(Text::from).to_vec()));
    let size: usize = arguments.iter().map(|argument| argument.len() + 1).sum();
    assert_eq!(
        (image.argv_bytes, image.argv_truncated),
        (Some(size as u64), Some(false))
    );
    Ok(())
}

#[test]
fn long_arguments_are_whole_or_said_to_be_cut() -> anyhow::Result<()> {
    let _alone = harness::alone()?;
    // Around the sizes at which records end, then far above what a recording keeps.
    for count in [1_usize, 11, 12, 13, 27, 28, 29, 100, 240, 1500] {
        let argument = "x".repeat(1023);
        let mut command = vec!["/bin/true".to_owned()];
        command.extend(std::iter::repeat_n(argument, count));
        let report = harness::record(&command)?.complete_report()?;
        let image = report.root()?.image()?;
        let size = "/bin/true".len() + 1 + count * 1024;
        assert_eq!(image.argv_bytes, Some(size as u64), "{count} KiB");
        let reported: Vec<u8> = image
            .argv
            .iter()
            .flatten()
            .flat_map(|text| [text.0.as_slice(), b"\0"].concat())
            .collect();
        let given: Vec<u8> = command
            .iter()
            .flat_map(|text| [text.as_bytes(), b"\0"].concat())
            .collect();
        if image.argv_truncated == Some(true) {
            assert!(
                count > 240,
                "{count} KiB were cut to {} bytes",
                reported.len()
            );
            assert!(
                given.starts_with(&reported[..reported.len() - 1]),
                "{count} KiB"
            );
        } else {
            assert_eq!(image.argv_truncated, Some(false));
            assert!(reported == given, "{count} KiB differ");
        }
    }
    Ok(())
}
