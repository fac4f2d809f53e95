#include "client_cli/tables/difference_text.h"

#include "absl/strings/str_cat.h"

namespace optfarm::client_cli {
namespace {

using Kind = inspect::NodeDifference::Kind;

// "has op 'X' in the first graph and 'Y' in the second", with `quotes` around
// the values.
std::string Both(const inspect::NodeDifference& difference,
                 absl::string_view what, absl::string_view open,
                 absl::string_view close) {
  return absl::StrCat("has ", what, open, *difference.first, close,
                      " in the first graph and ", open, *difference.second,
                      close, " in the second");
}

std::string AttributeText(const inspect::NodeDifference& difference) {
  const std::string what =
      absl::StrCat("attribute '", difference.attribute, "' ");
  if (difference.first && difference.second) {
    return Both(difference, what, "", "");
  }
  return difference.first
             ? absl::StrCat("has ", what, "only in the first graph, with ",
                            *difference.first)
             : absl::StrCat("has ", what, "only in the second graph, with ",
                            *difference.second);
}

std::string WhatDiffers(const inspect::NodeDifference& difference) {
  switch (difference.kind) {
    case Kind::kNode:
      break;
    case Kind::kOp:
      return Both(difference, "op ", "'", "'");
    case Kind::kDevice:
      return Both(difference, "device ", "'", "'");
    case Kind::kInputCount:
      return absl::StrCat("has ", *difference.first,
                          " inputs in the first graph and ", *difference.second,
                          " in the second");
    case Kind::kInput:
      return Both(difference, absl::StrCat("input ", difference.input, " "),
                  "'", "'");
    case Kind::kControlInputs:
      return Both(difference, "control inputs ", "[", "]");
    case Kind::kAttribute:
      return AttributeText(difference);
  }
  return absl::StrCat("is only in the ", difference.first ? "first" : "second",
                      " graph");
}

}  // namespace

std::string DifferenceText(const inspect::NodeDifference& difference) {
  return absl::StrCat("Node '", difference.node, "' ", WhatDiffers(difference));
}

}  // namespace optfarm::client_cli
