#include "engine/graph/ops/tensorflow_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/graph/attr.h"
#include "engine/graph/ops/tensorflow_kernel_table.h"

namespace optfarm::graph {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

tensorflow::NodeDef Node(const std::string& op, tensorflow::DataType type) {
  tensorflow::NodeDef node;
  node.set_name("n");
  node.set_op(op);
  SetType(&node, "T", type);
  return node;
}

TEST(TensorFlowKernelsTest, ClassesDependOnTheType) {
  EXPECT_THAT(
      TensorFlowKernelClasses(Node("TruncateMod", tensorflow::DT_INT32)),
      ElementsAre("BinaryOp<CPUDevice, functor::safe_mod<int32>>"));
  EXPECT_THAT(
      TensorFlowKernelClasses(Node("TruncateMod", tensorflow::DT_FLOAT)),
      ElementsAre("BinaryOp<CPUDevice, functor::fmod<float>>"));
  EXPECT_THAT(TensorFlowKernelClasses(Node("TruncateMod", tensorflow::DT_BOOL)),
              IsEmpty());
}

TEST(TensorFlowKernelsTest, KnowsTheClassesOfWhatOurTransformsMake) {
  EXPECT_THAT(
      TensorFlowKernelClasses(Node("FusedPadConv2D", tensorflow::DT_FLOAT)),
      ElementsAre("FusedResizeConv2DUsingGemmOp<float, "
                  "FusedResizeAndPadConvFunctor<float, float, float, "
                  "FastGemmFunctor<float, float, float>, NEAREST>, false>"));
}

TEST(TensorFlowKernelsTest, NamesTypesAsTheRegistrationDoes) {
  // Walked through with a list of types, which have a namespace there.
  EXPECT_THAT(TensorFlowKernelClasses(Node("Select", tensorflow::DT_VARIANT)),
              ElementsAre("SelectOp<CPUDevice, ::tensorflow::Variant>"));
  EXPECT_THAT(TensorFlowKernelClasses(
                  Node("QuantizedResizeBilinear", tensorflow::DT_QUINT8)),
              ElementsAre("QuantizedResizeBilinearOp<::tensorflow::quint8>"));
  // Named one by one, without.
  EXPECT_THAT(TensorFlowKernelClasses(Node("Pack", tensorflow::DT_QUINT8)),
              Contains("PackOp<CPUDevice, quint8>"));
  EXPECT_THAT(TensorFlowKernelClasses(Node("Sin", tensorflow::DT_COMPLEX64)),
              ElementsAre("UnaryOp<CPUDevice, functor::sin<complex64>>"));
}

TEST(TensorFlowKernelsTest, TheTableIsSorted) {
  std::string last;
  for (const KernelClass& kernel : TensorFlowKernelTable()) {
    EXPECT_LE(last, kernel.op);
    last = kernel.op;
  }
}

}  // namespace
}  // namespace optfarm::graph
