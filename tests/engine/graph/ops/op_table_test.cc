// That the rows agree with their own signatures and with each other.

#include "engine/graph/ops/op_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_split.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_families.h"
#include "engine/graph/ops/op_signatures.h"
#include "tests/support/status_matchers.h"

namespace optfarm::graph {
namespace {

using tensorflow::OpDef;
using ::testing::ElementsAre;

std::vector<const OpRow*> AllRows() {
  std::vector<const OpRow*> rows;
  for (const auto& family :
       {ArrayOps(), ControlFlowOps(), ImageOps(), LinearAlgebraOps(), MathOps(),
        NnOps(), QuantizedOps(), RandomOps(), StateOps(), StringOps(),
        LayerOps(), LinearQuantizationOps(), OtherFormatOps()}) {
    for (const OpRow& row : family) rows.push_back(&row);
  }
  return rows;
}

// The attributes of a list; none for an empty one.
std::vector<absl::string_view> Split(absl::string_view list) {
  return absl::StrSplit(list, ',', absl::SkipEmpty());
}

TEST(OpTableTest, EverySignatureReads) {
  for (const OpRow* row : AllRows()) {
    EXPECT_THAT(ParseOpSignature(row->names, row->signature),
                ::optfarm::testing::IsOk());
  }
}

TEST(OpTableTest, EveryOpHasOneRow) {
  std::set<std::string> seen;
  for (const OpRow* row : AllRows()) {
    for (absl::string_view name : NamesOf(*row)) {
      EXPECT_TRUE(seen.insert(std::string(name)).second) << name;
      EXPECT_EQ(FindOpRow(name), row) << name;
      EXPECT_EQ(FindOpDef(name)->name(), name);
    }
  }
  EXPECT_EQ(seen.size(), AllOpNames().size());
}

TEST(OpTableTest, AnUnknownOpHasTheDefaults) {
  EXPECT_EQ(FindOpRow("NobodysOp"), nullptr);
  const OpRow& row = RowOf("NobodysOp");
  EXPECT_EQ(row.shape, nullptr);
  EXPECT_EQ(row.role, OpRole::kNone);
  EXPECT_EQ(row.origin, Origin::kTensorFlow14);
}

TEST(OpTableTest, SeveralNamesOfARow) {
  EXPECT_THAT(NamesOf(RowOf("Acos")),
              ElementsAre("Tan", "Asin", "Acos", "Atan"));
}

TEST(OpTableTest, ValuesNeedAShape) {
  for (const OpRow* row : AllRows()) {
    if (row->values != nullptr) {
      EXPECT_NE(row->shape, nullptr) << row->names;
    }
  }
}

TEST(OpTableTest, LayersAreCounted) {
  for (const OpRow* row : AllRows()) {
    EXPECT_EQ(row->layer.product != LayerProduct::kNone,
              row->multiply_adds != nullptr)
        << row->names;
  }
}

// Layers of quantized values take input, weights, a bias and two ranges.
TEST(OpTableTest, LayersSayWhatTheirSignatureSays) {
  for (const OpRow* row : AllRows()) {
    const LayerForm& layer = row->layer;
    if (!layer.is_quantized) continue;
    const OpDef& op = *FindOpDef(NamesOf(*row)[0]);
    EXPECT_EQ(op.input_arg(2).name() == "bias", layer.has_bias) << row->names;
    EXPECT_EQ(row->range_input, layer.has_bias ? 3 : 2) << row->names;
    EXPECT_EQ(op.output_arg_size() == 1, layer.result == LayerResult::kFloats)
        << row->names;
    EXPECT_EQ(row->output_range_input >= 0,
              layer.result == LayerResult::kQuantizedValues)
        << row->names;
  }
}

TEST(OpTableTest, RangesAreMinimumThenMaximum) {
  for (const OpRow* row : AllRows()) {
    for (const int input : {row->range_input, row->output_range_input}) {
      if (input < 0) continue;
      const OpDef& op = *FindOpDef(NamesOf(*row)[0]);
      ASSERT_GT(op.input_arg_size(), input + 1) << row->names;
      EXPECT_THAT(op.input_arg(input).name(), ::testing::HasSubstr("min"))
          << row->names;
      EXPECT_THAT(op.input_arg(input + 1).name(), ::testing::HasSubstr("max"))
          << row->names;
    }
    if (row->keeps_range) {
      EXPECT_GE(row->range_input, 0) << row->names;
      EXPECT_EQ(FindOpDef(NamesOf(*row)[0])->output_arg_size(), 3)
          << row->names;
    }
  }
}

TEST(OpTableTest, QuantizedFormsFitTheirOps) {
  for (const OpRow* row : AllRows()) {
    if (row->quantized == nullptr) continue;
    const QuantizedForm& form = *row->quantized;
    const OpDef* op = FindOpDef(form.op);
    ASSERT_NE(op, nullptr) << row->names;
    for (absl::string_view name : Split(form.copied)) {
      EXPECT_NE(FindAttrDef(*op, name), nullptr) << row->names << name;
      EXPECT_NE(FindAttrDef(*FindOpDef(NamesOf(*row)[0]), name), nullptr)
          << row->names << name;
    }
    std::vector<absl::string_view> types = Split(form.value_types);
    if (form.has_32_bit_result()) types.push_back(form.result_type);
    for (absl::string_view name : types) {
      const auto* attr = FindAttrDef(*op, name);
      ASSERT_NE(attr, nullptr) << row->names << name;
      EXPECT_EQ(attr->type(), "type") << row->names << name;
    }
  }
}

TEST(OpTableTest, WholeLayersAreOfTheSameProduct) {
  for (const OpRow* row : AllRows()) {
    const bool is_float =
        row->layer.product != LayerProduct::kNone && !row->layer.is_quantized;
    const bool has_layer =
        row->quantized != nullptr && !row->quantized->layer_op.empty();
    EXPECT_EQ(is_float, has_layer) << row->names;
    if (!has_layer) continue;
    EXPECT_TRUE(IsQuantizedLayer(row->quantized->layer_op)) << row->names;
    EXPECT_EQ(RowOf(row->quantized->layer_op).layer.product, row->layer.product)
        << row->names;
  }
}

TEST(OpTableTest, BytesAreMovedByOpsThatTakeThem) {
  for (const OpRow* row : AllRows()) {
    if (!row->moves_bytes) continue;
    EXPECT_EQ(row->flow, ValueFlow::kDataMovement) << row->names;
    for (absl::string_view name : NamesOf(*row)) {
      const auto* type = FindAttrDef(*FindOpDef(name), "T");
      ASSERT_NE(type, nullptr) << name;
      const auto& allowed = type->allowed_values().list().type();
      EXPECT_TRUE(allowed.empty() ||
                  absl::c_linear_search(allowed,
                                        static_cast<int>(tensorflow::DT_UINT8)))
          << name;
    }
  }
}

TEST(OpTableTest, ProductsOfFloatsAndWholeLayers) {
  for (const char* op : {"Conv2D", "DepthwiseConv2dNative", "MatMul"}) {
    EXPECT_TRUE(IsFloatProduct(op)) << op;
    EXPECT_FALSE(IsQuantizedLayer(op)) << op;
  }
  EXPECT_FALSE(IsFloatProduct("QuantizedConv2D"));
  EXPECT_FALSE(IsQuantizedLayer("QuantizedConv2D"));
  EXPECT_TRUE(IsQuantizedLayer("QuantizedMatMulWithBiasAndRelu"));
  EXPECT_FALSE(IsFloatProduct("NobodysOp"));
}

// What an op does on floats has, on quantized values, the op as its form.
TEST(OpTableTest, FloatOpsLeadBackToTheirQuantizedOps) {
  int count = 0;
  for (const OpRow* row : AllRows()) {
    if (row->float_op.empty()) continue;
    ++count;
    const OpRow* in_float = FindOpRow(row->float_op);
    ASSERT_NE(in_float, nullptr) << row->names;
    ASSERT_NE(in_float->quantized, nullptr) << row->names;
    EXPECT_EQ(in_float->quantized->op, row->names);
  }
  EXPECT_EQ(count, 9);
}

TEST(OpTableTest, OpsThatHaveARoleOfTheirOwn) {
  EXPECT_TRUE(IsConst("Const"));
  EXPECT_FALSE(IsConst("ImmutableConst"));
  EXPECT_TRUE(IsIdentity("Identity"));
  EXPECT_FALSE(IsIdentity("IdentityN"));
  EXPECT_TRUE(IsVariable("VariableV2"));
  EXPECT_TRUE(IsVariable("VarHandleOp"));
  EXPECT_FALSE(IsVariable("ReadVariableOp"));
  EXPECT_TRUE(IsNoOp("NoOp"));
  EXPECT_FALSE(IsNoOp("ControlTrigger"));
  EXPECT_TRUE(IsReshape("Reshape"));
  EXPECT_FALSE(IsReshape("QuantizedReshape"));
  EXPECT_FALSE(IsReshape("NobodysOp"));
}

TEST(OpTableTest, OpsThatOnlyPassTheirInputOn) {
  for (const char* op :
       {"Identity", "Snapshot", "StopGradient", "PreventGradient"}) {
    EXPECT_TRUE(IsForwarding(op)) << op;
  }
  // One may fail, one may be fed, others belong to conditions and loops.
  for (const char* op : {"CheckNumerics", "PlaceholderWithDefault", "Switch",
                         "Exit", "NextIteration", "LoopCond", "NobodysOp"}) {
    EXPECT_FALSE(IsForwarding(op)) << op;
  }
}

TEST(OpTableTest, QuantizingWithRangesAndWithScales) {
  EXPECT_TRUE(IsQuantize("QuantizeV2"));
  EXPECT_FALSE(IsQuantize("QuantizeLinear"));
  EXPECT_TRUE(IsDequantize("Dequantize"));
  EXPECT_FALSE(IsDequantize("DequantizeLinear"));
  EXPECT_TRUE(IsQuantizeLinear("QuantizeLinear"));
  EXPECT_TRUE(IsDequantizeLinear("DequantizeLinear"));
  for (const char* op : {"Requantize", "RequantizePerChannel"}) {
    EXPECT_TRUE(IsRequantize(op)) << op;
    EXPECT_FALSE(IsRequantizationRange(op)) << op;
  }
  for (const char* op :
       {"RequantizationRange", "RequantizationRangePerChannel"}) {
    EXPECT_FALSE(IsRequantize(op)) << op;
    EXPECT_TRUE(IsRequantizationRange(op)) << op;
  }
  EXPECT_TRUE(IsFakeQuantize("FakeQuantWithMinMaxVars"));
  EXPECT_FALSE(IsFakeQuantize("FakeQuantWithMinMaxVarsPerChannel"));
}

TEST(OpTableTest, OpsOfTensorFlow14AreNotLate) {
  for (const char* op :
       {"Conv2D", "FusedBatchNorm", "QuantizedConcat", "RandomPoisson",
        "DecodeGif", "GatherV2", "SampleDistortedBoundingBoxV2"}) {
    EXPECT_FALSE(IsLateOp(op)) << op;
  }
  for (const char* op :
       {"AddV2", "FusedBatchNormV3", "QuantizedConcatV2", "RandomPoissonV2",
        "DecodeImage", "ClipByValue", "TensorScatterUpdate", "Timestamp"}) {
    EXPECT_TRUE(IsLateOp(op)) << op;
  }
}

}  // namespace
}  // namespace optfarm::graph
