//! Small files of every format, made in memory.

#![allow(dead_code, reason = "each test file uses its own part of this module")]
#![expect(clippy::unwrap_used, reason = "a test that cannot write its file should stop")]

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use harmonium_data::Format;
use std::io::{Cursor, Write};

pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn idx(kind: u8, dims: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, kind, u8::try_from(dims.len()).unwrap()];
    for d in dims {
        bytes.extend(d.to_be_bytes());
    }
    bytes.extend(data);
    bytes
}

pub(crate) fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

pub(crate) fn npz(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

pub(crate) fn png(height: u32, width: u32, color: png::ColorType, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A baseline JPEG of flat blocks of 8×8 pixels: the levels of each, row by row, one of grey or three of
/// luma and colour differences. Codes have four bits for each size of a level, and one for the end.
pub(crate) fn jpeg(height: u8, width: u8, blocks: &[Vec<u8>]) -> Vec<u8> {
    let n = u8::try_from(blocks[0].len()).unwrap();
    let segment = |marker: u8, body: &[u8]| {
        let length = u16::try_from(body.len() + 2).unwrap().to_be_bytes();
        [&[0xff, marker][..], &length, body].concat()
    };
    let mut frame = vec![8, 0, 8 * height, 0, 8 * width, n];
    let mut scan = vec![n];
    for id in 1..=n {
        frame.extend([id, 0x11, 0]);
        scan.extend([id, 0]);
    }
    scan.extend([0, 63, 0]);
    let sizes = [&[0, 0, 0, 0, 12][..], &[0; 12], &(0..12).collect::<Vec<u8>>()].concat();
    let end = [&[0x10, 1][..], &[0; 15], &[0]].concat();
    let (mut bits, mut before) = (Vec::new(), vec![128_i32; usize::from(n)]);
    for levels in blocks {
        for (level, before) in levels.iter().zip(&mut before) {
            let difference = i32::from(*level) - *before;
            *before = i32::from(*level);
            let size = u32::BITS - difference.unsigned_abs().leading_zeros();
            let code = if difference < 0 { difference - 1 } else { difference };
            bits.extend((0..4).rev().map(|b| size >> b & 1 == 1));
            bits.extend((0..size).rev().map(|b| code >> b & 1 == 1));
            bits.push(false);
        }
    }
    let byte =
        |bits: &[bool]| (0..8).fold(0, |b, i| 2 * b + u8::from(*bits.get(i).unwrap_or(&true)));
    let data = bits.chunks(8).map(byte).flat_map(|b| if b == 0xff { vec![b, 0] } else { vec![b] });
    let mut bytes = vec![0xff, 0xd8];
    bytes.extend(segment(0xdb, &[&[0][..], &[8; 64]].concat()));
    bytes.extend(segment(0xc0, &frame));
    bytes.extend(segment(0xc4, &[sizes, end].concat()));
    bytes.extend(segment(0xda, &scan));
    bytes.extend(data);
    bytes.extend([0xff, 0xd9]);
    bytes
}

/// An element with its tag and padding.
pub(crate) fn element(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// An array of a class, with the elements that follow its name.
pub(crate) fn matrix(class: u32, name: &str, dims: &[u32], rest: &[u8]) -> Vec<u8> {
    let words = |w: &[u32]| w.iter().flat_map(|d| d.to_le_bytes()).collect::<Vec<u8>>();
    let mut body = element(6, &words(&[class, 0]));
    body.extend(element(5, &words(dims)));
    body.extend(element(1, name.as_bytes()));
    body.extend(rest);
    element(14, &body)
}

pub(crate) fn mat_bytes(name: &str, dims: &[u32], data: &[u8]) -> Vec<u8> {
    matrix(9, name, dims, &element(2, data))
}

pub(crate) fn mat_text(name: &str, text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    matrix(4, name, &[1, length], &element(16, text.as_bytes()))
}

pub(crate) fn mat_struct(name: &str, fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut rest = element(5, &8_u32.to_le_bytes());
    let mut names = Vec::new();
    for (field, _) in fields {
        names.extend(field.as_bytes());
        names.resize(names.len().next_multiple_of(8), 0);
    }
    rest.extend(element(1, &names));
    for (_, array) in fields {
        rest.extend(array);
    }
    matrix(2, name, &[1, 1], &rest)
}

pub(crate) fn mat(arrays: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"MATLAB 5.0 MAT-file".to_vec();
    bytes.resize(124, b' ');
    bytes.extend([0, 1, b'I', b'M']);
    for array in arrays {
        bytes.extend(array);
    }
    bytes
}

pub(crate) fn compressed(array: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(array).unwrap();
    let packed = encoder.finish().unwrap();
    let mut bytes = 15_u32.to_le_bytes().to_vec();
    bytes.extend(u32::try_from(packed.len()).unwrap().to_le_bytes());
    bytes.extend(packed);
    bytes
}

/// The same 3 × 4 grey table in every format that can hold it.
pub(crate) const GREY: [u8; 12] = [0, 1, 2, 3, 40, 50, 60, 70, 255, 0, 7, 9];

fn by_columns(rows: usize, columns: usize, values: &[u8]) -> Vec<u8> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| values[r * columns + c])).collect()
}

/// [`GREY`] in every format.
pub(crate) fn samples() -> Vec<(Format, Vec<u8>)> {
    let row = |sep: &str, r: &[u8]| r.iter().map(u8::to_string).collect::<Vec<_>>().join(sep);
    let lines = |sep: &str| GREY.chunks(4).map(|r| row(sep, r) + "\n").collect::<String>();
    let arff_header = "% a comment\n@relation grey\n\n@attribute a numeric\n@attribute 'b b' real\n\
                       @ATTRIBUTE c integer\n@attribute d {0,3,9,70}\n@data\n";
    let sparse = "{1 1,2 2, 3 3}\n{0 40,1 50,2 60,3 70}\n{0 255,2 7,3 9}\n";
    let svm = "1 2:1 3:2 4:3\n-1 1:40 2:50 3:60 4:70 # note\n1 1:255 3:7 4:9\n";
    let floats: Vec<u8> = GREY.iter().flat_map(|&b| f64::from(b).to_le_bytes()).collect();
    let columns = by_columns(3, 4, &GREY);
    let array = mat_bytes("x", &[3, 4], &columns);
    vec![
        (Format::Idx, idx(8, &[3, 4], &GREY)),
        (Format::Idx, gz(&idx(8, &[3, 2, 2], &GREY))),
        (Format::Npy, npy("|u1", false, "(3, 4)", &GREY)),
        (Format::Npy, npy("<f8", false, "(3, 2, 2)", &floats)),
        (Format::Npy, npy("|u1", true, "(3, 4)", &columns)),
        (Format::Npz, npz(&[("x", npy("|u1", false, "(3, 4)", &GREY))])),
        (Format::Text, lines(",").into_bytes()),
        (Format::Text, format!("a\tb\tc\td\n{}", lines("\t")).into_bytes()),
        (Format::Text, gz(format!("# by hand\n{}", lines("  ")).as_bytes())),
        (Format::Arff, format!("{arff_header}{}", lines(", ")).into_bytes()),
        (Format::Arff, format!("{arff_header}{sparse}").into_bytes()),
        (Format::Mat, mat(std::slice::from_ref(&array))),
        (Format::Mat, mat(&[compressed(&mat_struct("s", &[("x", array)]))])),
        (Format::SvmLight, svm.as_bytes().to_vec()),
    ]
}

/// A deflate stream of `start` and 300 MiB of zeros, made by repeating one block of it.
pub(crate) fn deflated_zeros(start: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(start).unwrap();
    encoder.flush().unwrap();
    let from = encoder.get_ref().len();
    encoder.write_all(&vec![0; 1 << 20]).unwrap();
    encoder.flush().unwrap();
    let mut stream = encoder.get_ref().clone();
    let block = stream[from..].to_vec();
    (1..300).for_each(|_| stream.extend(&block));
    // An empty last block.
    stream.extend([3, 0]);
    stream
}

/// A zip archive of one deflated entry `x.npy` that claims to hold 1 GiB.
pub(crate) fn zip_of(stream: &[u8]) -> Vec<u8> {
    let length = u32::try_from(stream.len()).unwrap();
    let mut common = [20_u16, 0, 8, 0, 0, 0, 0].map(u16::to_le_bytes).concat();
    common.extend([length, 1 << 30].map(u32::to_le_bytes).concat());
    common.extend([5_u16, 0].map(u16::to_le_bytes).concat());
    let mut bytes = [b"PK\x03\x04", common.as_slice(), b"x.npy", stream].concat();
    let start = u32::try_from(bytes.len()).unwrap();
    bytes.extend([b"PK\x01\x02\x14\x00", common.as_slice(), &[0; 14], b"x.npy"].concat());
    let size = u32::try_from(bytes.len()).unwrap() - start;
    bytes.extend(b"PK\x05\x06");
    bytes.extend([0_u16, 0, 1, 1].map(u16::to_le_bytes).concat());
    bytes.extend([size, start].map(u32::to_le_bytes).concat());
    bytes.extend([0, 0]);
    bytes
}
