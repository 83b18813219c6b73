// The outside world of a NESL program: output, files, streams, the random stream, clocks, processes.
//
// One interface serves every way of running: the reference interpreter calls it for the effects of Core,
// the plan executor for lcu::Service. A service is named and works on one instance: arguments and results
// are rows of dense columns of length 1 (ir/data.h). "int" and "float" below are the program's types; a
// service accepts either width of argument and returns the widths asked for in `resultTypes`.
//
//   print           [char] -> bool                        writes the characters, T
//   raise           [char] -> bool                        always an error, whose message is the text
//   random_draws    int n -> [int64]                      the next n raw draws of 31 bits (language.md 4.9)
//   random_seed     int -> bool                           restarts the stream
//   start_timer     int -> int                            a new timer's number, 1 or more
//   stop_timer      int -> float                          seconds since that timer started; 0: the latest one
//   language.md 6.16 and 6.17, with the NESL names, pairs flattened into rows, a stream as its number (0
//   none, 1 input, 2 output): write_object_to_file    row, [char] -> bool           read_object_from_file
//   row, [char] -> row write_string_to_file    [char], [char] -> bool        append_string_to_file   [char],
//   [char] -> bool read_string_from_file   [char] -> [char] read_int_seq_from_file  [char] -> [int]
//   read_float_seq_from_file [char] -> [float] read_matrix_market      [char] -> [[int, float]], int
//   open_in_file, open_out_file, open_append_file         [char] -> int, bool, [char]
//   close_file              int -> bool, [char]           read_char     int -> char, bool, [char]
//   read_string             [char], int, int -> [char], int, bool, [char]
//   read_object             row, int -> row, bool, [char] write_object  row, int -> bool, [char]
//   read_int_seq            int -> [int], bool, [char]    read_float_seq int -> [float], bool, [char]
//   write_string            [char], int -> bool, [char]
//   shell_command           [char], [char] -> [char]      get_environment_variable [char] -> [char]
//   spawn                   [char], int, int, int -> int, int, int, bool, [char]
//
// An int draw from raw draws r: r mod v for v <= 2^31; above that an instance takes two consecutive draws
// a, b and yields (a * 2^31 + b) mod v. A float draw is v * (r mod 2^30) / 2^30.
#pragma once

#include <string_view>
#include <variant>

#include "ir/data.h"
#include "ir/diagnostic.h"

namespace kelpie {

class RandomStream;  // runtime/random_stream.h

class Services {
 public:
  virtual ~Services() = default;

  /// A top-level form begins: the random stream is reset. Called by whatever executes the form's program.
  virtual void beginForm() = 0;
  /// The form is over: open streams are closed. Output files that are still open are kept when the form
  /// succeeded and removed when it failed, so that no half-written file remains.
  virtual void endForm(bool succeeded) = 0;

  /// Runs the service `name`. `resultTypes` gives the row of the result; `span` is where errors are reported.
  virtual std::variant<Columns, RuntimeError> call(std::string_view name, const Columns& arguments,
                                                   const Row& resultTypes, Span span) = 0;

  /// random_draws for who makes the draws himself: the stream where it is, which then passes over `count`.
  virtual RandomStream passOver(uint64_t count) = 0;
};

}  // namespace kelpie
