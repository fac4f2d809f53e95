// Kernels that no recorded graph covers, against values worked out by hand or
// against what they must undo.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::Pointwise;

using Complex = std::complex<float>;

Tensor Longs(const std::vector<int64_t>& values) {
  return Tensor::FromValues<int64_t>(Shape{static_cast<int64_t>(values.size())},
                                     values);
}

TEST(BitwiseTest, ShiftsAreBoundedByTheWidth) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor left,
      Op("LeftShift").In(Ints({1, 1, 1})).In(Ints({3, 31, -5})).Run());
  EXPECT_THAT(ValuesOf<int32_t>(left), ElementsAre(8, INT32_MIN, 1));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor right,
      Op("RightShift").In(Ints({-8, 16})).In(Ints({1, 99})).Run());
  EXPECT_THAT(ValuesOf<int32_t>(right), ElementsAre(-4, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor count,
                               Op("PopulationCount").In(Ints({-1, 5})).Run());
  EXPECT_THAT(ValuesOf<uint8_t>(count), ElementsAre(32, 2));
}

TEST(FourierTest, TheInverseUndoesTransformsOfAnyLength) {
  for (int64_t size : {1, 2, 5, 8, 12, 31}) {
    const Tensor signal = Scattered({3, size}, 7);
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Tensor spectrum,
        Op("RFFT").In(signal).In(Ints({static_cast<int32_t>(size)})).Run());
    EXPECT_EQ(spectrum.shape(), (Shape{3, size / 2 + 1}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Tensor back,
        Op("IRFFT").In(spectrum).In(Ints({static_cast<int32_t>(size)})).Run());
    EXPECT_THAT(ValuesOf<float>(back),
                Pointwise(FloatNear(1e-5f), ValuesOf<float>(signal)));
  }
}

TEST(FourierTest, AConstantHasOneLine) {
  const std::vector<Complex> ones(6, Complex(1, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor spectrum,
      Op("FFT").In(Tensor::FromValues<Complex>(Shape{6}, ones)).Run());
  const auto values = ValuesOf<Complex>(spectrum);
  EXPECT_NEAR(std::abs(values[0] - Complex(6, 0)), 0, 1e-5);
  for (size_t i = 1; i < values.size(); ++i) {
    EXPECT_NEAR(std::abs(values[i]), 0, 1e-5);
  }
}

TEST(FourierTest, TwoDimensionsUndoThemselves) {
  const Tensor signal = Scattered({6, 5}, 3);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor spectrum,
                               Op("RFFT2D").In(signal).In(Ints({6, 5})).Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor back, Op("IRFFT2D").In(spectrum).In(Ints({6, 5})).Run());
  EXPECT_THAT(ValuesOf<float>(back),
              Pointwise(FloatNear(1e-5f), ValuesOf<float>(signal)));
}

TEST(ComplexTest, ArithmeticAndParts) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor z,
      Op("Complex").In(Floats({2}, {3, 0})).In(Floats({2}, {4, 1})).Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor square,
      Op("Mul").Type("T", tensorflow::DT_COMPLEX64).In(z).In(z).Run());
  EXPECT_THAT(ValuesOf<Complex>(square),
              ElementsAre(Complex(-7, 24), Complex(-1, 0)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor size, Op("ComplexAbs").In(z).Run());
  EXPECT_THAT(ValuesOf<float>(size), ElementsAre(FloatEq(5), FloatEq(1)));
}

TEST(SparseTest, FillsADenseTensor) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor dense,
                               Op("SparseToDense")
                                   .In(Ints({2, 2}, {0, 1, 1, 0}))
                                   .In(Ints({2, 2}))
                                   .In(Floats({2}, {5, 6}))
                                   .In(Float(-1))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(dense), ElementsAre(-1, 5, 6, -1));
  EXPECT_FALSE(Op("SparseToDense")
                   .In(Ints({1, 2}, {0, 2}))
                   .In(Ints({2, 2}))
                   .In(Float(5))
                   .In(Float(0))
                   .Run()
                   .ok());
}

TEST(SparseTest, MultipliesByADenseMatrix) {
  const int64_t places[] = {0, 1, 1, 0};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor product,
      Op("SparseTensorDenseMatMul")
          .In(Tensor::FromValues<int64_t>(Shape{2, 2}, places))
          .In(Floats({2}, {2, 3}))
          .In(Longs({2, 2}))
          .In(Floats({2, 2}, {1, 2, 3, 4}))
          .Run());
  EXPECT_THAT(ValuesOf<float>(product), ElementsAre(6, 8, 3, 6));
}

TEST(SparseTest, EmptyRowsGetTheDefault) {
  const int64_t places[] = {2, 1, 0, 0};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out, Op("SparseFillEmptyRows")
                          .In(Tensor::FromValues<int64_t>(Shape{2, 2}, places))
                          .In(Floats({2}, {5, 6}))
                          .In(Longs({3, 4}))
                          .In(Float(9))
                          .RunAll(4));
  EXPECT_THAT(ValuesOf<int64_t>(out[0]), ElementsAre(0, 0, 1, 0, 2, 1));
  EXPECT_THAT(ValuesOf<float>(out[1]), ElementsAre(6, 9, 5));
  EXPECT_THAT(ValuesOf<bool>(out[2]), ElementsAre(false, true, false));
  EXPECT_THAT(ValuesOf<int64_t>(out[3]), ElementsAre(2, 0));
}

TEST(UniqueTest, KeepsTheOrderOfFirstAppearance) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out,
      Op("UniqueWithCounts").In(Ints({4, 2, 4, 4, 1})).RunAll(3));
  EXPECT_THAT(ValuesOf<int32_t>(out[0]), ElementsAre(4, 2, 1));
  EXPECT_THAT(ValuesOf<int32_t>(out[1]), ElementsAre(0, 1, 0, 0, 2));
  EXPECT_THAT(ValuesOf<int32_t>(out[2]), ElementsAre(3, 1, 1));
}

TEST(InTopKTest, TiesCountAsWithin) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor in,
                               Op("InTopK")
                                   .Int("k", 2)
                                   .In(Floats({2, 3}, {3, 2, 1, 5, 5, 5}))
                                   .In(Ints({2, 1}))
                                   .Run());
  EXPECT_THAT(ValuesOf<bool>(in), ElementsAre(false, true));
}

TEST(CtcGreedyDecoderTest, CountsRunsOnceAndLeavesBlanksOut) {
  // One sequence of four steps over two classes and the blank: 0 0 blank 0.
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out,
      Op("CTCGreedyDecoder")
          .Bool("merge_repeated", true)
          .In(Floats({4, 1, 3}, {5, 1, 0, 4, 1, 0, 0, 1, 2, 3, 0, 0}))
          .In(Ints({4}))
          .RunAll(4));
  EXPECT_THAT(ValuesOf<int64_t>(out[0]), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(ValuesOf<int64_t>(out[1]), ElementsAre(0, 0));
  EXPECT_THAT(ValuesOf<int64_t>(out[2]), ElementsAre(1, 2));
  EXPECT_THAT(ValuesOf<float>(out[3]), ElementsAre(-14));
}

TEST(EinsumTest, MultipliesTracesAndTransposes) {
  const Tensor a = Floats({2, 2}, {1, 2, 3, 4});
  const auto einsum = [&](const std::string& equation, int count) {
    Op op("Einsum");
    op.Text("equation", equation).Int("N", count);
    for (int i = 0; i < count; ++i) op.In(a);
    return op.Run();
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor product, einsum("ij,jk->ik", 2));
  EXPECT_THAT(ValuesOf<float>(product), ElementsAre(7, 10, 15, 22));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor turned, einsum("ij->ji", 1));
  EXPECT_THAT(ValuesOf<float>(turned), ElementsAre(1, 3, 2, 4));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor trace, einsum("ii->", 1));
  EXPECT_THAT(ValuesOf<float>(trace), ElementsAre(5));
  EXPECT_FALSE(einsum("ij->k", 1).ok());
}

TEST(ReverseSequenceTest, TurnsTheFirstElementsOfEachBatch) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("ReverseSequence")
                                   .Int("seq_dim", 1)
                                   .In(Floats({2, 3}, {1, 2, 3, 4, 5, 6}))
                                   .In(Longs({2, 3}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(2, 1, 3, 6, 5, 4));
}

TEST(MatrixBandPartTest, KeepsTheBand) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out, Op("MatrixBandPart")
                            .In(Floats({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}))
                            .In(Longs({1}))
                            .In(Longs({0}))
                            .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(1, 0, 0, 4, 5, 0, 0, 8, 9));
}

TEST(LinearAlgebraTest, CholeskyAndQrMultiplyBack) {
  const Tensor matrix = Floats({2, 2}, {4, 2, 2, 3});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor l, Op("Cholesky").In(matrix).Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor back,
      Op("BatchMatMul").Bool("adj_y", true).In(l).In(l).Run());
  EXPECT_THAT(ValuesOf<float>(back),
              Pointwise(FloatNear(1e-5f), ValuesOf<float>(matrix)));
  const Tensor tall = Scattered({4, 2}, 5);
  for (bool full : {false, true}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto qr, Op("Qr").Bool("full_matrices", full).In(tall).RunAll(2));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor product,
                                 Op("MatMul").In(qr[0]).In(qr[1]).Run());
    EXPECT_THAT(ValuesOf<float>(product),
                Pointwise(FloatNear(1e-5f), ValuesOf<float>(tall)));
  }
  EXPECT_FALSE(Op("Cholesky").In(Floats({2, 2}, {1, 2, 2, 1})).Run().ok());
  EXPECT_FALSE(Op("MatrixInverse").In(Floats({2, 2}, {1, 2, 2, 4})).Run().ok());
}

TEST(Conv2DTest, GroupsHaveFiltersOfTheirOwn) {
  // Two groups of one channel, one filter each: 2 x and 3 x.
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("Conv2D")
                                   .Ints("strides", {1, 1, 1, 1})
                                   .Text("padding", "VALID")
                                   .In(Floats({1, 1, 2, 2}, {1, 10, 2, 20}))
                                   .In(Floats({1, 1, 1, 2}, {2, 3}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(2, 30, 4, 60));
}

TEST(Conv2DTest, DoubleIsNotRoundedToFloat) {
  const double exact = 1.0 + 1e-12;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("Conv2D")
          .Type("T", tensorflow::DT_DOUBLE)
          .Ints("strides", {1, 1, 1, 1})
          .Text("padding", "SAME")
          .In(Tensor::Scalar<double>(exact).Reshaped(Shape{1, 1, 1, 1}))
          .In(Tensor::Scalar<double>(1.0).Reshaped(Shape{1, 1, 1, 1}))
          .Run());
  EXPECT_EQ(*out.data<double>(), exact);
}

TEST(CombinedNonMaxSuppressionTest, KeepsTheBestOfEachClass) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out,
      Op("CombinedNonMaxSuppression")
          .In(Floats({1, 3, 1, 4}, {0, 0, 1, 1, 0, 0, 1, 0.9, 0, 0, 0.1, 2}))
          .In(Floats({1, 3, 2}, {0.9, 0.1, 0.8, 0.2, 0.3, 0.7}))
          .In(Int(2))
          .In(Int(4))
          .In(Float(0.5))
          .In(Float(0.25))
          .RunAll(4));
  EXPECT_THAT(ValuesOf<float>(out[1]),
              ElementsAre(FloatEq(0.9), FloatEq(0.7), FloatEq(0.3), 0));
  EXPECT_THAT(ValuesOf<float>(out[2]), ElementsAre(0, 1, 0, 0));
  EXPECT_EQ(*out[3].data<int32_t>(), 3);
  // Clipped to the picture.
  EXPECT_EQ(out[0].data<float>()[7], 1.0f);
}

TEST(ResizeAreaTest, AveragesWhatIsCovered) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("ResizeArea")
                                   .In(Floats({1, 1, 3, 1}, {1, 2, 6}))
                                   .In(Ints({1, 2}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(FloatNear(4.0f / 3, 1e-5f),
                                                FloatNear(14.0f / 3, 1e-5f)));
}

TEST(ResizeBicubicTest, GivesBackThePixelsAtTheSameSize) {
  const Tensor image = Scattered({1, 5, 4, 2}, 11);
  for (bool half_pixel : {false, true}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                                 Op("ResizeBicubic")
                                     .Bool("half_pixel_centers", half_pixel)
                                     .In(image)
                                     .In(Ints({5, 4}))
                                     .Run());
    EXPECT_THAT(ValuesOf<float>(out),
                Pointwise(FloatNear(1e-6f), ValuesOf<float>(image)));
  }
}

TEST(RandomDrawTest, SeedsRepeatAndRangesHold) {
  const auto draw = [] {
    return *Op("RandomUniformInt")
                .Int("seed", 3)
                .In(Ints({1000}))
                .In(Int(-2))
                .In(Int(3))
                .Run();
  };
  const std::vector<int32_t> values = ValuesOf<int32_t>(draw());
  EXPECT_EQ(values, ValuesOf<int32_t>(draw()));
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), -2);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 2);
}

TEST(RandomDrawTest, MomentsFitTheDistribution) {
  const auto mean_of = [](const Tensor& tensor) {
    double sum = 0;
    for (float value : tensor.flat<float>()) sum += value;
    return sum / static_cast<double>(tensor.num_elements());
  };
  for (float parameter : {0.5f, 4.0f, 50.0f}) {
    for (const char* op : {"RandomGamma", "RandomPoisson"}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Tensor out,
          Op(op).Int("seed", 5).In(Ints({20000})).In(Float(parameter)).Run());
      EXPECT_NEAR(mean_of(out) / parameter, 1.0, 0.05) << op << parameter;
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime
