// docs/ops.md is printed from the kernels and never written by hand: each
// kernel is asked for every type that its op's signature allows. This test
// compares the two, and writes the page where OPTFARM_UPDATE_DOCS is set.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/half.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/reference/catalog.h"
#include "tests/engine/runtime/sample_node.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::runtime {
namespace {

constexpr char kOpening[] =
    "# Ops\n\n"
    "Every op that the runtime supports, by family, with the types it takes "
    "and the family's arithmetic.\n"
    "This page is printed from the kernels by\n"
    "`OPTFARM_UPDATE_DOCS=1 build/dev/bin/engine_runtime_test "
    "--gtest_filter='OpsPage*'`.\n\n"
    "*half* and *bfloat16* in italics are computed in float and rounded once "
    "per output. \"all\" are all types\n"
    "that TensorFlow defines for the op. Loading a model with a type that is "
    "not listed is an error.\n\n"
    "*values* says where an op's results come from: they are computed "
    "(arithmetic), they are computed but stay in\n"
    "the range of the input (range-preserving), or they are elements of the "
    "inputs (data movement). *quantized* is\n"
    "the op that does the same on quantized values.\n\n"
    "`tests/golden/op_corpus_test.cc` runs 498 graphs that were recorded with "
    "TensorFlow. 494 agree with its\n"
    "answers, floats within 1e-4 of the largest magnitude. The other four "
    "draw random numbers (RandomGamma,\n"
    "RandomPoissonV2) and agree in types and shapes.\n";

// How a kernel takes one type.
enum class Support { kNone, kOwn, kThroughFloat };

Support SupportOf(const KernelEntry& entry, tensorflow::NodeDef node,
                  const std::string& attr, DataType type) {
  graph::SetType(&node, attr, type);
  if (entry.make(node).ok()) return Support::kOwn;
  return entry.Make(node).ok() ? Support::kThroughFloat : Support::kNone;
}

// A node that can be made: the first choice of types that the kernel takes,
// or just some node when there is none.
tensorflow::NodeDef MakeableNode(const tensorflow::OpDef& def,
                                 const KernelEntry& entry) {
  const tensorflow::NodeDef sample = SampleNode(def);
  std::vector<const tensorflow::OpDef::AttrDef*> attrs;
  std::vector<std::vector<DataType>> choices;
  size_t combinations = 1;
  for (const auto& attr : def.attr()) {
    if (attr.type() != "type") continue;
    attrs.push_back(&attr);
    choices.push_back(AllowedTypes(attr));
    // The sample's own choice, which may be a default, comes first.
    choices.back().insert(choices.back().begin(),
                          sample.attr().at(attr.name()).type());
    combinations *= choices.back().size();
  }
  for (size_t i = 0; i < std::min<size_t>(combinations, 20000); ++i) {
    tensorflow::NodeDef node = sample;
    size_t rest = i;
    for (size_t k = 0; k < attrs.size(); ++k) {
      graph::SetType(&node, attrs[k]->name(),
                     choices[k][rest % choices[k].size()]);
      rest /= choices[k].size();
    }
    if (entry.Make(node).ok()) return node;
  }
  return sample;
}

// "T: float, double, *half*".
std::string TypesText(const KernelEntry& entry,
                      const tensorflow::OpDef::AttrDef& attr,
                      const tensorflow::NodeDef& node) {
  std::vector<std::string> names;
  bool has_all = true;
  for (DataType type : AllowedTypes(attr)) {
    const Support support = SupportOf(entry, node, attr.name(), type);
    has_all = has_all && support == Support::kOwn;
    if (support == Support::kNone) continue;
    const std::string name(graph::DataTypeName(type));
    names.push_back(support == Support::kOwn ? name
                                             : absl::StrCat("*", name, "*"));
  }
  const bool is_long = names.size() > 2;
  return absl::StrCat("`", attr.name(), "`: ",
                      names.empty()        ? "none"
                      : has_all && is_long ? "all"
                                           : absl::StrJoin(names, ", "));
}

// Where the elements of the op's output come from.
absl::string_view FlowText(graph::ValueFlow flow) {
  switch (flow) {
    case graph::ValueFlow::kArithmetic:
      return "arithmetic";
    case graph::ValueFlow::kRangePreserving:
      return "range-preserving";
    case graph::ValueFlow::kDataMovement:
    case graph::ValueFlow::kReshaping:
    case graph::ValueFlow::kForwarding:
      return "data movement";
  }
  return "";
}

// What the op is on quantized values; "–" when it stays in float.
absl::string_view QuantizedText(const graph::OpRow& row) {
  if (row.moves_bytes) return "itself";
  if (row.quantized == nullptr) return "–";
  return row.quantized->layer_op.empty() ? row.quantized->op
                                         : row.quantized->layer_op;
}

std::string Row(const std::string& op, const KernelEntry& entry) {
  const tensorflow::OpDef* def = graph::FindOpDef(op);
  if (def == nullptr) return absl::StrCat("| ", op, " | no signature | | |\n");
  const tensorflow::NodeDef node = MakeableNode(*def, entry);
  std::vector<std::string> types;
  for (const auto& attr : def->attr()) {
    if (attr.type() == "type") types.push_back(TypesText(entry, attr, node));
  }
  const graph::OpRow& row = graph::RowOf(op);
  const bool is_foreign = row.origin == graph::Origin::kOtherFormats;
  return absl::StrCat("| ", op, is_foreign ? " (not TensorFlow's)" : "", " | ",
                      types.empty() ? "–" : absl::StrJoin(types, "; "), " | ",
                      FlowText(row.flow), " | ", QuantizedText(row), " |\n");
}

std::string PrintPage() {
  // Families in the order of their names, which is the catalog's.
  std::map<std::string, std::string> rows;
  std::map<std::string, std::string> arithmetic;
  for (const std::string& op : AllKernels().Ops()) {
    const KernelEntry& entry = *AllKernels().Find(op);
    const std::string family(entry.family.name);
    absl::StrAppend(&rows[family], Row(op, entry));
    arithmetic[family] = std::string(entry.family.arithmetic);
  }
  std::string page = kOpening;
  for (const auto& [family, text] : rows) {
    absl::StrAppend(&page, "\n## ", family,
                    "\n\nArithmetic: ", arithmetic[family],
                    ".\n\n| op | types | values | quantized |\n"
                    "|---|---|---|---|\n",
                    text);
  }
  return page;
}

TEST(OpsPageTest, SaysWhatTheKernelsSay) {
  const std::string path = testing::SourcePath("docs/ops.md");
  const std::string page = PrintPage();
  if (std::getenv("OPTFARM_UPDATE_DOCS") != nullptr) {
    OPTFARM_ASSERT_OK(WriteFileAtomically(path, page));
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string written, ReadFile(path));
  EXPECT_TRUE(written == page)
      << "docs/ops.md is old; its first lines say how to print it";
}

TEST(OpsPageTest, EveryKernelHasASignatureAndTakesSomeType) {
  for (const std::string& op : AllKernels().Ops()) {
    const tensorflow::OpDef* def = graph::FindOpDef(op);
    ASSERT_NE(def, nullptr) << op;
    const tensorflow::NodeDef node = MakeableNode(*def, *AllKernels().Find(op));
    for (const auto& attr : def->attr()) {
      if (attr.type() != "type") continue;
      EXPECT_NE(TypesText(*AllKernels().Find(op), attr, node),
                absl::StrCat("`", attr.name(), "`: none"))
          << op << ": " << AllKernels().Find(op)->Make(node).status();
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime
