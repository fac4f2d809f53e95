// Kernels that came later: beam search, banded diagonals, fractional pooling,
// norms and products of further types.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/reference/catalog.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

using Complex = std::complex<float>;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kComplex = tensorflow::DT_COMPLEX64;

absl::StatusOr<std::vector<Tensor>> BeamSearch(
    const Tensor& inputs, const std::vector<int32_t>& sizes, int beam_width,
    int top_paths, bool merge_repeated = false) {
  return Op("CTCBeamSearchDecoder")
      .Int("beam_width", beam_width)
      .Int("top_paths", top_paths)
      .Bool("merge_repeated", merge_repeated)
      .In(inputs)
      .In(Ints(sizes))
      .RunAll(3 * top_paths + 1);
}

// The probability of each text, summed over all ways of saying it.
std::map<std::vector<int>, double> AllTexts(
    const std::vector<std::vector<double>>& p) {
  std::map<std::vector<int>, double> texts;
  const int classes = static_cast<int>(p[0].size());
  std::vector<int> path;
  const std::function<void(double)> visit = [&](double so_far) {
    if (path.size() == p.size()) {
      std::vector<int> text;
      int before = -1;
      for (int c : path) {
        if (c != classes - 1 && c != before) text.push_back(c);
        before = c;
      }
      texts[text] += so_far;
      return;
    }
    for (int c = 0; c < classes; ++c) {
      const double here = p[path.size()][c];
      path.push_back(c);
      visit(so_far * here);
      path.pop_back();
    }
  };
  visit(1.0);
  return texts;
}

// With beams enough for all texts the search is exact.
TEST(CtcBeamSearchTest, AgreesWithAllWaysOfSayingAText) {
  for (uint32_t seed = 1; seed < 6; ++seed) {
    const Tensor logits = Scattered({5, 1, 3}, seed);
    std::vector<std::vector<double>> p(5);
    for (int t = 0; t < 5; ++t) {
      double sum = 0.0;
      for (int c = 0; c < 3; ++c) {
        p[t].push_back(std::exp(logits.data<float>()[t * 3 + c]));
        sum += p[t].back();
      }
      for (double& value : p[t]) value /= sum;
    }
    std::vector<std::pair<double, std::vector<int>>> ranked;
    for (const auto& [text, probability] : AllTexts(p)) {
      ranked.push_back({-probability, text});
    }
    std::sort(ranked.begin(), ranked.end());
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                                 BeamSearch(logits, {5}, 400, 3));
    for (int rank = 0; rank < 3; ++rank) {
      const std::vector<int>& text = ranked[rank].second;
      EXPECT_THAT(ValuesOf<int64_t>(out[3 + rank]), ElementsAreArray(text));
      EXPECT_THAT(ValuesOf<int64_t>(out[6 + rank]),
                  ElementsAre(1, static_cast<int64_t>(text.size())));
      EXPECT_NEAR(out[9].data<float>()[rank], std::log(-ranked[rank].first),
                  1e-4);
    }
  }
}

// The case of TensorFlow's own test.
TEST(CtcBeamSearchTest, TwoBeamsAsInTensorFlow) {
  const float p[5][6] = {
      {0.30999f, 0.309938f, 0.0679938f, 0.0673362f, 0.0708352f, 0.173908f},
      {0.215136f, 0.439699f, 0.0370931f, 0.0393967f, 0.0381581f, 0.230517f},
      {0.199959f, 0.489485f, 0.0233221f, 0.0251417f, 0.0233289f, 0.238763f},
      {0.279611f, 0.452966f, 0.0204795f, 0.0209126f, 0.0194803f, 0.20655f},
      {0.51286f, 0.288951f, 0.0243026f, 0.0220788f, 0.0219297f, 0.129878f}};
  std::vector<float> logits;
  for (const auto& row : p) {
    for (float value : row) logits.push_back(std::log(value) + 2.0f);
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out, BeamSearch(Floats({5, 1, 6}, logits), {5}, 2, 2));
  EXPECT_THAT(ValuesOf<int64_t>(out[2]), ElementsAre(1, 0));
  EXPECT_THAT(ValuesOf<int64_t>(out[3]), ElementsAre(0, 1, 0));
  EXPECT_THAT(ValuesOf<int64_t>(out[1]), ElementsAre(0, 0, 0, 1, 0, 2));
}

TEST(CtcBeamSearchTest, RepeatedLabelsMayBeMerged) {
  // Label 0, blank, label 0.
  const Tensor logits = Floats({3, 1, 2}, {9, 0, 0, 9, 9, 0});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto apart,
                               BeamSearch(logits, {3}, 4, 1, false));
  EXPECT_THAT(ValuesOf<int64_t>(apart[1]), ElementsAre(0, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto merged,
                               BeamSearch(logits, {3}, 4, 1, true));
  EXPECT_THAT(ValuesOf<int64_t>(merged[1]), ElementsAre(0));
}

TEST(CtcBeamSearchTest, RefusesWhatDoesNotFit) {
  const Tensor logits = Floats({3, 1, 2}, {9, 0, 0, 9, 9, 0});
  EXPECT_THAT(BeamSearch(logits, {4}, 4, 1),
              StatusIs(kInvalid, HasSubstr("length 4")));
  EXPECT_THAT(BeamSearch(logits, {3}, 1, 2),
              StatusIs(kInvalid, HasSubstr("top_paths 2")));
  EXPECT_THAT(BeamSearch(logits, {0}, 3, 2),
              StatusIs(kInvalid, HasSubstr("has 1 paths")));
}

TEST(BandedDiagonalsTest, PartAlignsShorterDiagonals) {
  // 1 2 3 4 / 5 6 7 8 / 9 10 11 12
  const Tensor input = Floats({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto part = [&](const std::string& align) {
    return Op("MatrixDiagPartV3")
        .Text("align", align)
        .In(input)
        .In(Ints({-1, 3}))
        .In(Float(0))
        .Run();
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor right_left, part("RIGHT_LEFT"));
  EXPECT_EQ(right_left.shape(), (Shape{5, 3}));
  EXPECT_THAT(ValuesOf<float>(right_left),
              ElementsAre(0, 0, 4, 0, 3, 8, 2, 7, 12, 1, 6, 11, 5, 10, 0));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor left_right, part("LEFT_RIGHT"));
  EXPECT_THAT(ValuesOf<float>(left_right),
              ElementsAre(4, 0, 0, 3, 8, 0, 2, 7, 12, 1, 6, 11, 0, 5, 10));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor old,
      Op("MatrixDiagPartV2").In(input).In(Int(1)).In(Float(0)).Run());
  EXPECT_THAT(ValuesOf<float>(old), ElementsAre(2, 7, 12));
}

TEST(BandedDiagonalsTest, MatricesFromDiagonalsAndBack) {
  for (const char* align :
       {"LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"}) {
    const Tensor matrices = Counted({2, 4, 3});
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor part, Op("MatrixDiagPartV3")
                                                        .Text("align", align)
                                                        .In(matrices)
                                                        .In(Ints({-3, 2}))
                                                        .In(Float(-1))
                                                        .Run());
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor back, Op("MatrixDiagV3")
                                                        .Text("align", align)
                                                        .In(part)
                                                        .In(Ints({-3, 2}))
                                                        .In(Int(4))
                                                        .In(Int(3))
                                                        .In(Float(-1))
                                                        .Run());
    EXPECT_EQ(back.shape(), matrices.shape());
    EXPECT_EQ(ValuesOf<float>(back), ValuesOf<float>(matrices)) << align;
    const std::vector<float> sevens(24, 7.0f);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor set,
                                 Op("MatrixSetDiagV3")
                                     .Text("align", align)
                                     .In(Floats({2, 4, 3}, sevens))
                                     .In(part)
                                     .In(Ints({-3, 2}))
                                     .Run());
    EXPECT_EQ(ValuesOf<float>(set), ValuesOf<float>(matrices)) << align;
  }
}

TEST(BandedDiagonalsTest, SizesThatAreNotSaidAreTheLeast) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, Op("MatrixDiagV2")
                                                     .In(Floats({2}, {1, 2}))
                                                     .In(Int(1))
                                                     .In(Int(-1))
                                                     .In(Int(-1))
                                                     .In(Float(9))
                                                     .Run());
  EXPECT_EQ(out.shape(), (Shape{3, 3}));
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(9, 1, 9, 9, 9, 2, 9, 9, 9));
  EXPECT_THAT(Op("MatrixDiagV2")
                  .In(Floats({2}, {1, 2}))
                  .In(Int(0))
                  .In(Int(5))
                  .In(Int(5))
                  .In(Float(9))
                  .Run(),
              StatusIs(kInvalid, HasSubstr("are not those of matrices")));
  EXPECT_FALSE(Op("MatrixDiagPartV2")
                   .In(Counted({2, 2}))
                   .In(Int(2))
                   .In(Float(9))
                   .Run()
                   .ok());
}

tensorflow::NodeDef FractionalNode(const std::string& op, bool pseudo_random,
                                   bool overlapping) {
  tensorflow::NodeDef node;
  node.set_name("n");
  node.set_op(op);
  auto* ratios = (*node.mutable_attr())["pooling_ratio"].mutable_list();
  for (float ratio : {1.0f, 1.44f, 1.73f, 1.0f}) ratios->add_f(ratio);
  graph::SetBool(&node, "pseudo_random", pseudo_random);
  graph::SetBool(&node, "overlapping", overlapping);
  graph::SetInt(&node, "seed", 7);
  return node;
}

TEST(FractionalPoolTest, CellsCoverThePictureAndHaveTwoSizes) {
  const Tensor in = Scattered({2, 10, 13, 3}, 4);
  const std::vector<Tensor> inputs = {in};
  for (bool pseudo_random : {false, true}) {
    for (bool overlapping : {false, true}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const auto out,
          EvaluateNode(
              FractionalNode("FractionalMaxPool", pseudo_random, overlapping),
              inputs, 3));
      EXPECT_EQ(out[0].shape(), (Shape{2, 6, 7, 3}));
      const auto rows = ValuesOf<int64_t>(out[1]);
      const auto columns = ValuesOf<int64_t>(out[2]);
      ASSERT_EQ(rows.size(), 7u);
      EXPECT_EQ(rows.front(), 0);
      EXPECT_EQ(rows.back(), 10);
      EXPECT_EQ(columns.back(), 13);
      for (size_t i = 0; i + 1 < rows.size(); ++i) {
        EXPECT_GE(rows[i + 1] - rows[i], 1);
        EXPECT_LE(rows[i + 1] - rows[i], 2);
      }
      // One cell by its definition.
      const int64_t extra = overlapping ? 1 : 0;
      float most = -2.0f;
      for (int64_t y = rows[2]; y < rows[3] + extra; ++y) {
        for (int64_t x = columns[4]; x < columns[5] + extra; ++x) {
          most = std::max(most, in.data<float>()[((10 + y) * 13 + x) * 3 + 1]);
        }
      }
      EXPECT_EQ(out[0].data<float>()[((6 + 2) * 7 + 4) * 3 + 1], most);
    }
  }
}

TEST(FractionalPoolTest, TheAverageOfEqualsIsThatValue) {
  const std::vector<Tensor> inputs = {
      Floats({1, 10, 13, 1}, std::vector<float>(130, 2.5f))};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out,
      EvaluateNode(FractionalNode("FractionalAvgPool", false, true), inputs,
                   3));
  for (float value : ValuesOf<float>(out[0])) EXPECT_EQ(value, 2.5f);
}

TEST(MaxPoolV2Test, ItsWindowIsAnInput) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, Op("MaxPoolV2")
                                                     .Text("padding", "VALID")
                                                     .In(Counted({1, 4, 4, 1}))
                                                     .In(Ints({1, 2, 2, 1}))
                                                     .In(Ints({1, 2, 2, 1}))
                                                     .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(5, 7, 13, 15));
  EXPECT_FALSE(Op("MaxPoolV2")
                   .Text("padding", "VALID")
                   .In(Counted({1, 4, 4, 1}))
                   .In(Ints({1, 2, 2, 1}))
                   .In(Ints({1, 0, 2, 1}))
                   .Run()
                   .ok());
}

TEST(EuclideanNormTest, IsTheRootOfTheSumOfSquares) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("EuclideanNorm")
                                   .In(Floats({2, 2}, {3, 4, 5, 12}))
                                   .In(Ints({1}))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(5, 13));
  const std::vector<Complex> values = {{3, 4}, {0, 12}};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor complex,
                               Op("EuclideanNorm")
                                   .Type("T", kComplex)
                                   .In(Tensor::FromValues<Complex>({2}, values))
                                   .In(Ints({0}))
                                   .Run());
  EXPECT_THAT(ValuesOf<Complex>(complex), ElementsAre(Complex(13, 0)));
}

TEST(ComplexReductionTest, SumMeanAndProduct) {
  const std::vector<Complex> values = {{1, 2}, {3, -1}};
  const Tensor x = Tensor::FromValues<Complex>({2}, values);
  const std::pair<const char*, Complex> cases[] = {
      {"Sum", {4, 1}}, {"Mean", {2, 0.5f}}, {"Prod", {5, 5}}};
  for (const auto& [op, wanted] : cases) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Tensor out, Op(op).Type("T", kComplex).In(x).In(Ints({0})).Run());
    EXPECT_THAT(ValuesOf<Complex>(out), ElementsAre(wanted)) << op;
  }
  EXPECT_FALSE(Op("Max").Type("T", kComplex).In(x).In(Ints({0})).Run().ok());
}

TEST(MatMulTypesTest, ComplexAdjointsAreConjugated) {
  const std::vector<Complex> values = {{1, 2}, {0, 1}};
  const Tensor x = Tensor::FromValues<Complex>({2, 1}, values);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, Op("BatchMatMulV2")
                                                     .Type("T", kComplex)
                                                     .Bool("adj_x", true)
                                                     .In(x)
                                                     .In(x)
                                                     .Run());
  EXPECT_THAT(ValuesOf<Complex>(out), ElementsAre(Complex(6, 0)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor plain,
                               Op("MatMul")
                                   .Type("T", kComplex)
                                   .Bool("transpose_a", true)
                                   .In(x)
                                   .In(x)
                                   .Run());
  EXPECT_THAT(ValuesOf<Complex>(plain), ElementsAre(Complex(-4, 4)));
}

TEST(MatMulTypesTest, UnsignedProductsWrapAround) {
  const std::vector<uint8_t> values = {200, 3};
  const Tensor row = Tensor::FromValues<uint8_t>({1, 2}, values);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("MatMul")
                                   .Type("T", tensorflow::DT_UINT8)
                                   .Bool("transpose_b", true)
                                   .In(row)
                                   .In(row)
                                   .Run());
  EXPECT_THAT(ValuesOf<uint8_t>(out), ElementsAre((40000 + 9) % 256));
}

}  // namespace
}  // namespace optfarm::runtime
