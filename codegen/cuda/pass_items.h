// The loop over the items of a thread, for one stage of a pass.
//
// It computes what the level of the stage scans, counts or folds, and leaves the rest in registers for later
// stages. The same loop is written in several forms (pass_checks.h chooses them).
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// What the text of items takes for granted.
struct ItemForm {
  CheckForm checks = CheckForm::Record;
  const char* noted = "good";     ///< what noted ones make false
  bool whole = false;             ///< all items are in the tile, or harmless: none is tested
  bool nearest = false;           ///< those that are not do what the nearest one that is does
  bool alone = false;             ///< they are in one segment, of a pass that numbers them
  bool ahead = false;             ///< ... that goes on behind the range: only what it scans counts
  bool plainReciprocals = false;  ///< those of float32 that are not plain are noted, too
};

/// Whether thunks of the stage need to know segments, whether positions in these, whether they have loops
/// (which take longer than anything around them), and whether they can fail.
bool usesSegments(const PassText& t, const StagePlan& stage);
bool usesPositions(const PassText& t, const StagePlan& stage);
bool hasLoops(const PassText& t, const StagePlan& stage);
bool canFail(const PassText& t, const StagePlan& stage);

/// How items in this form name things and what becomes of their checks.
Dialect itemDialect(const PassText& t, const ItemForm& form);
/// An emitter, at column 8, that finds loaded elements and items of earlier stages in registers.
ExpressionEmitter itemEmitter(const PassText& t, const Dialect& d, size_t stage);
/// Where the one segment of all items begins, if the form has it and they need it: in front of their loops.
/// (Their stores could change it, as far as compilers know.)
void writeFirst(PassText& t, const StagePlan& stage, const ItemForm& form);
/// i, s and p of an item, as far as they are used.
void writeIndices(PassText& t, const StagePlan& stage, const ItemForm& form);
/// Later thunks of the same stage read the value of a Map by name.
void defineLocal(PassText& t, lcu::VarId v, const std::string& text, ScalarType type, size_t stage,
                 ExpressionEmitter& emitter, int indent = 8);
/// What an item throws.
void permuted(PassText& t, const lcu::Soac& soac, ExpressionEmitter& emitter);
/// An item goes into what the thread has folded so far, of reduction `b`.
void accumulated(PassText& t, uint32_t b, const std::vector<std::string>& items);
/// Opens the loops over the items of a thread, in order.
void openItems(PassText& t);
/// The loops over what a stage computes; over the identities of its operators instead.
void writeItems(PassText& t, size_t number, const ItemForm& form);
/// The same, twice if columns that are gathered may lie side by side: with what the launch has put there.
void writeItemsFromRecords(PassText& t, size_t number, const ItemForm& form);
void writeIdentities(PassText& t, size_t number);

}  // namespace kelpie::codegen::cuda
