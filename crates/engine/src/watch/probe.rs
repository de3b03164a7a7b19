//! The program that the kernel runs at a tracepoint: it looks whether the event is of a watched
//! disk, and puts its fields into the buffer of the CPU.
//!
//! A perf event on the tracepoint would do the same without a program. But Linux 6.18 gives it no
//! sample while the CPU is idle, and that is where most completions come in: of 64,000 it showed
//! 300.

use super::format::Layout;

/// Registers: the result, arguments 1 to 5, one that calls keep, the end of the stack.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;
const R6: u8 = 6;
const STACK: u8 = 10;

/// Operations (`linux/bpf.h` and the kernel's instruction-set.rst).
const MOVE: u8 = 0xbf;
const MOVE_NUMBER: u8 = 0xb7;
const MOVE_NUMBER_32: u8 = 0xb4;
const ADD_NUMBER: u8 = 0x07;
const STORE_NUMBER_64: u8 = 0x7a;
const LOAD_MAP: u8 = 0x18;
const JUMP_IF_EQUAL_32: u8 = 0x16;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// A load of 4, 2 or 1 bytes, and the store of as many.
const WIDTHS: [(usize, u8, u8); 3] = [(4, 0x61, 0x63), (2, 0x69, 0x6b), (1, 0x71, 0x73)];

/// The kernel's function that puts bytes into the buffer of a CPU.
const PERF_EVENT_OUTPUT: i32 = 25;
/// The buffer of the CPU on which the program runs.
const THIS_CPU: i32 = -1;
/// Says that the number to load is a descriptor of a table.
const IS_DESCRIPTOR: u8 = 1;

/// A tracepoint's own fields begin here. A program may not read the ones before.
const FIELDS: usize = 8;

/// One instruction, as the kernel reads it.
fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    let bytes = [code, from << 4 | to];
    let [one, two] = offset.to_ne_bytes();
    let [a, b, c, d] = number.to_ne_bytes();
    u64::from_ne_bytes([bytes[0], bytes[1], one, two, a, b, c, d])
}

/// The program for a tracepoint. Its record is as the tracepoint has it, up to the last field that is
/// read, so that it begins with the number of the tracepoint.
pub(super) fn program(layout: &Layout, disks: &[(u32, u32)], table: i32) -> Vec<u64> {
    let end = layout.end();
    let size = end.next_multiple_of(8);
    let on_stack = |at: usize| at as i16 - size as i16;
    let mut program = Vec::from([
        instruction(MOVE, R6, R1, 0, 0),
        instruction(WIDTHS[0].1, R2, R6, layout.device as i16, 0),
    ]);
    // From each disk that it is to the instruction behind the exit.
    for (place, (major, minor)) in disks.iter().enumerate() {
        let ahead = disks.len() - 1 - place + 2;
        let number = (major << 20 | minor) as i32;
        program.push(instruction(JUMP_IF_EQUAL_32, R2, 0, ahead as i16, number));
    }
    program.push(instruction(MOVE_NUMBER, R0, 0, 0, 0));
    program.push(instruction(EXIT, 0, 0, 0, 0));
    // All of the record has to be written, or the kernel refuses to copy it.
    program.push(instruction(STORE_NUMBER_64, STACK, 0, on_stack(0), i32::from(layout.number)));
    program.push(instruction(STORE_NUMBER_64, STACK, 0, on_stack(size - 8), 0));
    let mut at = FIELDS;
    while at < end {
        let fits =
            |(width, _, _): &&(usize, u8, u8)| at.is_multiple_of(*width) && at + width <= end;
        let (width, load, store) = WIDTHS.iter().find(fits).expect("a byte always fits");
        program.push(instruction(*load, R2, R6, at as i16, 0));
        program.push(instruction(*store, STACK, R2, on_stack(at), 0));
        at += width;
    }
    program.extend([
        instruction(MOVE, R1, R6, 0, 0),
        instruction(LOAD_MAP, R2, IS_DESCRIPTOR, 0, table),
        0,
        instruction(MOVE_NUMBER_32, R3, 0, 0, THIS_CPU),
        instruction(MOVE, R4, STACK, 0, 0),
        instruction(ADD_NUMBER, R4, 0, 0, -(size as i32)),
        instruction(MOVE_NUMBER, R5, 0, 0, size as i32),
        instruction(CALL, 0, 0, 0, PERF_EVENT_OUTPUT),
        instruction(MOVE_NUMBER, R0, 0, 0, 0),
        instruction(EXIT, 0, 0, 0, 0),
    ]);
    program
}

#[cfg(test)]
mod tests {
    use super::super::format::made;
    use super::*;

    /// What a program does with an event of this tracepoint: the record that it puts out, if it puts
    /// out one. It runs the few instructions that the program has.
    fn run(program: &[u64], event: &[u8]) -> Option<Vec<u8>> {
        let mut stack = vec![0xeeu8; 512];
        let mut registers = [0u64; 11];
        let mut at = 0;
        loop {
            let [code, both, low, high, number @ ..] = program[at].to_ne_bytes();
            let (to, from) = (usize::from(both & 15), usize::from(both >> 4));
            let offset = i64::from(i16::from_ne_bytes([low, high]));
            let number = i32::from_ne_bytes(number);
            let place = |offset: i64| (512 + offset) as usize;
            at += 1;
            match code {
                MOVE => registers[to] = registers[from],
                MOVE_NUMBER | MOVE_NUMBER_32 => registers[to] = number as u64,
                ADD_NUMBER => registers[to] = registers[to].wrapping_add(number as u64),
                STORE_NUMBER_64 => {
                    stack[place(offset)..][..8].copy_from_slice(&i64::from(number).to_ne_bytes());
                }
                LOAD_MAP => at += 1,
                JUMP_IF_EQUAL_32 if registers[to] as u32 == number as u32 => {
                    at += offset as usize;
                }
                JUMP_IF_EQUAL_32 => {}
                CALL => {
                    let (start, size) = (place(registers[4] as i64), registers[5] as usize);
                    return Some(stack[start..start + size].to_vec());
                }
                EXIT => return None,
                load_or_store => {
                    let is = |(_, load, store): &&(usize, u8, u8)| {
                        [*load, *store].contains(&load_or_store)
                    };
                    let (width, load, _) = *WIDTHS.iter().find(is).expect("a known operation");
                    if load_or_store == load {
                        assert_eq!(offset as usize % width, 0, "the kernel refuses it");
                        assert!(FIELDS <= offset as usize, "the kernel refuses it");
                        let mut bytes = [0; 8];
                        bytes[..width].copy_from_slice(&event[offset as usize..][..width]);
                        registers[to] = u64::from_le_bytes(bytes);
                    } else {
                        let bytes = registers[from].to_le_bytes();
                        stack[place(offset)..][..width].copy_from_slice(&bytes[..width]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_program_tells_the_fields_of_watched_disks_alone() {
        // With a length that is no multiple of four.
        for end in [44, 54, 60, 61] {
            let layout = made::layout(1021, end);
            let program = program(&layout, &[(8, 16), (4095, 3), (254, 0)], 7);
            for (device, is_watched) in
                [((8, 16), true), ((4095, 3), true), ((254, 0), true), ((254, 1), false)]
            {
                let mut event: Vec<u8> = (0..64).collect();
                let number: u32 = device.0 << 20 | device.1;
                event[layout.device..][..4].copy_from_slice(&number.to_ne_bytes());
                let record = run(&program, &event);
                assert_eq!(record.is_some(), is_watched, "{device:?}");
                let Some(record) = record else { continue };
                assert_eq!(record.len() % 8, 0);
                assert_eq!(record[..8], 1021u64.to_ne_bytes());
                assert_eq!(record[FIELDS..end], event[FIELDS..end]);
                assert!(record[end..].iter().all(|byte| *byte == 0), "{record:?}");
            }
        }
    }
}
