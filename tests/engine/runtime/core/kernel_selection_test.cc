// How a build with chosen kernels tells which they are, and that a build
// without a choice has all.

#include "engine/runtime/core/kernel_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/attr.h"
#include "engine/runtime/core/kernel.h"

namespace optfarm::runtime {
namespace {

using ::testing::ElementsAre;

static_assert(IsListed("Conv2D Relu", "Conv2D"));
static_assert(IsListed("Conv2D Relu", "Relu"));
static_assert(!IsListed("Conv2D Relu6", "Relu"));
static_assert(!IsListed("MaxPool", "Pool"));
static_assert(!IsListed("", "Relu"));
static_assert(OpLiteral("Relu").name() == "Relu");

absl::StatusOr<std::unique_ptr<Kernel>> MakeNothing(
    const tensorflow::NodeDef&) {
  return absl::UnimplementedError("nothing");
}

TEST(KernelSelectionTest, DtypesAreSelectedByTensorFlowsNames) {
  for (int i = tensorflow::DataType_MIN; i <= tensorflow::DataType_MAX; ++i) {
    if (!tensorflow::DataType_IsValid(i)) continue;
    const auto dtype = static_cast<tensorflow::DataType>(i);
    if (SelectionName(dtype).empty()) continue;
    EXPECT_EQ(SelectionName(dtype), graph::DataTypeName(dtype));
  }
}

#ifndef OPTFARM_KERNEL_OPS
TEST(KernelSelectionTest, NamesOfEveryKindAreAdded) {
  KernelCatalog catalog;
  catalog.Add("Literal", MakeNothing);
  const char* pointer = "Pointer";
  catalog.Add(pointer, MakeNothing);
  catalog.Add(std::string("Text"), MakeNothing);
  catalog.Add(absl::string_view("View"), MakeNothing, /*is_pure=*/false);
  EXPECT_THAT(catalog.Ops(), ElementsAre("Literal", "Pointer", "Text", "View"));
  EXPECT_FALSE(catalog.Find("View")->is_pure);
}
#endif

}  // namespace
}  // namespace optfarm::runtime
