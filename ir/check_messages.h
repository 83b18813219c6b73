// What a failing check of a Core primitive says, the same on every way of running. {0} and {1} are the
// payloads.
#pragma once

#include <cstdint>

namespace kelpie::check_message {

constexpr const char* kDivision = "division by zero";
constexpr const char* kSquareRoot = "square root of a negative number";
constexpr const char* kLogarithm = "logarithm of a negative number";
constexpr const char* kShift = "shift count {0} is outside the width of int";
constexpr const char* kFloatToInt = "the float does not fit an int";
constexpr const char* kCharacter = "{0} is not the code of a character";
constexpr const char* kIndex = "index {0} is out of range for a sequence of length {1}";
constexpr const char* kRangeOrder = "the range starts at {0}, after its end {1}";
constexpr const char* kRangeSpan = "the range from {0} to {1} is longer than can be counted";
constexpr const char* kRangeStride = "the stride of a range must be at least 1, not {0}";
constexpr const char* kCopies = "the number of copies is negative: {0}";
constexpr const char* kLengths = "sequences of different lengths, {0} and {1}";
constexpr const char* kPieceLength = "a piece of a partition has the negative length {0}";
constexpr const char* kPieceSum =
    "the pieces of a partition have {0} elements together, the sequence has {1}";
/// A piece counts as this many elements more than the sequence has at most, so that no sum of lengths
/// overflows and comes out right by that.
constexpr int64_t kExcessOfPiece = int64_t{1} << 32;
constexpr const char* kSlice = "{0} elements from position {1} reach outside the sequence";
constexpr const char* kNegativeLength = "the length {0} is negative";
constexpr const char* kTooDeep = "the recursion is too deep: the stack is exhausted";
constexpr const char* kRandom = "the argument of rand must be positive";

}  // namespace kelpie::check_message
