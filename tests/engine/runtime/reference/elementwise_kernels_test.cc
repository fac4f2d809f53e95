// Unary and binary elementwise kernels, Cast and selection.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<float> Applied(const char* op, const std::vector<float>& values) {
  const auto out =
      Op(op).In(Floats({static_cast<int64_t>(values.size())}, values)).Run();
  EXPECT_TRUE(out.ok()) << op << ": " << out.status();
  return out.ok() ? ValuesOf<float>(*out) : std::vector<float>();
}

// How far `value` is from `exact`. UNITS: distances between floats around
// `exact`, where 0.5 is the error of rounding.
double UlpsBetween(float value, double exact) {
  const float rounded = static_cast<float>(exact);
  if (value == rounded) return 0;
  const double ulp = std::nextafter(std::abs(rounded),
                                    std::numeric_limits<float>::infinity()) -
                     std::abs(rounded);
  return std::abs(value - exact) / ulp;
}

// Values from -16 to 16, fine enough to meet every interval of the polynomials.
std::vector<float> Grid() {
  std::vector<float> grid = {-7.0f, -2.5f, -1.0f, 0.0f, 0.5f, 1.0f, 2.5f, 7.0f};
  for (int i = -4096; i <= 4096; ++i) {
    grid.push_back(static_cast<float>(i) * (16 / 4096.5f));
  }
  return grid;
}

struct UnaryCase {
  const char* op;
  double (*exact)(double);
  // The largest error that is allowed; measured with AVX2 behind each case.
  double ulps;
};

class UnaryFunctionTest : public ::testing::TestWithParam<UnaryCase> {};

TEST_P(UnaryFunctionTest, IsWithinItsUlpsOfTheDoubleResult) {
  const UnaryCase& unary = GetParam();
  const std::vector<float> x = Grid();
  const std::vector<float> out = Applied(unary.op, x);
  ASSERT_EQ(out.size(), x.size());
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double ulps = UlpsBetween(out[i], unary.exact(x[i]));
    if (ulps > worst) {
      worst = ulps;
      at = i;
    }
  }
  EXPECT_LE(worst, unary.ulps) << unary.op << "(" << x[at] << ") is " << out[at]
                               << ", not " << unary.exact(x[at]);
}

INSTANTIATE_TEST_SUITE_P(
    Ops, UnaryFunctionTest,
    ::testing::Values(
        UnaryCase{"Exp", [](double v) { return std::exp(v); }, 2},    // 1.20
        UnaryCase{"Tanh", [](double v) { return std::tanh(v); }, 5},  // 3.78
        UnaryCase{"Sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); },
                  3},                                                 // 1.90
        UnaryCase{"Sin", [](double v) { return std::sin(v); }, 2},    // 1.33
        UnaryCase{"Cos", [](double v) { return std::cos(v); }, 2},    // 1.36
        UnaryCase{"Atan", [](double v) { return std::atan(v); }, 1},  // 0.70
        UnaryCase{"Erf", [](double v) { return std::erf(v); }, 1},    // 0.62
        UnaryCase{"Softplus", [](double v) { return std::log1p(std::exp(v)); },
                  2},  // 1.35
        UnaryCase{"Elu", [](double v) { return v < 0 ? std::expm1(v) : v; },
                  1},  // 0.72
        UnaryCase{"Floor", [](double v) { return std::floor(v); }, 0},
        UnaryCase{"Ceil", [](double v) { return std::ceil(v); }, 0},
        UnaryCase{"Square", [](double v) { return v * v; }, 0},
        UnaryCase{"Neg", [](double v) { return -v; }, 0},
        UnaryCase{"Abs", [](double v) { return std::abs(v); }, 0},
        UnaryCase{"Sign", [](double v) { return double((v > 0) - (v < 0)); },
                  0}),
    [](const auto& param_info) { return param_info.param.op; });

TEST(UnaryTest, HardSwishIsZeroThenBentThenTheInput) {
  EXPECT_THAT(Applied("HardSwish", {-4, -3, -1.5f, 0, 1, 3, 5}),
              ElementsAre(0, 0, -0.375f, 0, 4.0f / 6.0f, 3, 5));
}

// As the interpreter computes it: -54 would be -4.5 and 6 would be 5.5 steps.
TEST(UnaryTest, HardSwishOfStepsHasSixteenBits) {
  std::vector<float> x;
  for (const int step : {-61, -54, -20, 0, 6, 30, 60}) {
    x.push_back(0.05f * static_cast<float>(step));
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor y,
                               Op("HardSwish")
                                   .Type("T", tensorflow::DT_FLOAT)
                                   .Float("input_scale", 0.05f)
                                   .Float("output_scale", 0.03f)
                                   .In(Floats({7}, x))
                                   .Run());
  std::vector<float> steps;
  for (const float value : ValuesOf<float>(y)) {
    steps.push_back(std::round(value / 0.03f));
  }
  EXPECT_THAT(steps, ElementsAre(0, -5, -11, 0, 5, 38, 100));
  EXPECT_FALSE(Op("HardSwish")
                   .Type("T", tensorflow::DT_FLOAT)
                   .Float("input_scale", 1)
                   .Float("output_scale", 0.001f)
                   .In(Floats({7}, x))
                   .Run()
                   .ok());
}

TEST(UnaryTest, RoundSendsHalvesToTheEvenNeighbour) {
  EXPECT_THAT(Applied("Round", {-2.5f, -1.5f, 0.5f, 1.5f, 2.5f}),
              ElementsAre(-2, -2, 0, 2, 2));
}

TEST(UnaryTest, RootsAndLogarithms) {
  EXPECT_THAT(Applied("Sqrt", {4, 0.25f}), ElementsAre(2, 0.5f));
  EXPECT_THAT(Applied("Rsqrt", {4, 0.25f}), ElementsAre(0.5f, 2));
  EXPECT_THAT(Applied("Reciprocal", {4, -2}), ElementsAre(0.25f, -0.5f));
  EXPECT_THAT(Applied("Log", {1, 2}),
              Pointwise(FloatNear(1e-6f), {0.0f, 0.693147f}));
}

TEST(UnaryTest, SmallestIntegerHasNoOpposite) {
  const int32_t smallest = std::numeric_limits<int32_t>::min();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("Abs").In(Ints({smallest, -3})).Run());
  EXPECT_THAT(ValuesOf<int32_t>(out), ElementsAre(smallest, 3));
}

TEST(UnaryTest, UnsupportedDtypeIsNamedWhenTheKernelIsMade) {
  EXPECT_THAT(Op("Exp").Type("T", tensorflow::DT_INT32).In(Int(1)).Run(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("Exp has no kernel for T=int32")));
}

TEST(RectifierTest, NotANumberStays) {
  const std::vector<float> out = Applied("Relu6", {NAN, -1, 3, 9});
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_THAT(std::vector<float>(out.begin() + 1, out.end()),
              ElementsAre(0, 3, 6));
}

TEST(BinaryTest, BroadcastsEveryPairOfShapes) {
  struct Pair {
    Shape a, b, out;
  };
  for (const Pair& p :
       {Pair{{2, 3}, {3}, {2, 3}}, Pair{{2, 1}, {1, 3}, {2, 3}},
        Pair{{}, {2, 2}, {2, 2}}, Pair{{4, 1, 3}, {2, 1}, {4, 2, 3}},
        Pair{{2, 3, 1, 2}, {3, 4, 1}, {2, 3, 4, 2}},
        Pair{{0, 3}, {1, 3}, {0, 3}}}) {
    const Tensor a = Counted(p.a);
    const Tensor b = Counted(p.b);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out, Op("Sub").In(a).In(b).Run());
    ASSERT_EQ(out.shape(), p.out);
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      // The index in an input: coordinates of size-1 dimensions do not count.
      const auto source = [&](const Tensor& t) {
        int64_t rest = i;
        int64_t at = 0;
        int64_t stride = 1;
        for (int k = 0; k < out.rank(); ++k) {
          const int64_t index = rest % out.dim(out.rank() - 1 - k);
          rest /= out.dim(out.rank() - 1 - k);
          const int64_t size = k < t.rank() ? t.dim(t.rank() - 1 - k) : 1;
          if (size > 1) at += index * stride;
          stride *= size;
        }
        return t.data<float>()[at];
      };
      EXPECT_EQ(out.data<float>()[i], source(a) - source(b));
    }
  }
}

TEST(BinaryTest, ShapesThatDoNotBroadcastAreShown) {
  EXPECT_THAT(
      Op("Add").In(Counted({2, 3})).In(Counted({2})).Run(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[2,3] and [2]")));
}

TEST(BinaryTest, DtypesMustAgree) {
  EXPECT_THAT(Op("Add").In(Float(1)).In(Int(1)).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("float and int32")));
}

std::vector<int32_t> Integers(const char* op, const std::vector<int32_t>& a,
                              const std::vector<int32_t>& b) {
  const auto out = Op(op).In(Ints(a)).In(Ints(b)).Run();
  EXPECT_TRUE(out.ok()) << op << ": " << out.status();
  return out.ok() ? ValuesOf<int32_t>(*out) : std::vector<int32_t>();
}

TEST(BinaryTest, IntegerDivisionsDifferInRounding) {
  EXPECT_THAT(Integers("FloorDiv", {7, -7, 7, -7}, {2, 2, -2, -2}),
              ElementsAre(3, -4, -4, 3));
  EXPECT_THAT(Integers("TruncateDiv", {7, -7, 7, -7}, {2, 2, -2, -2}),
              ElementsAre(3, -3, -3, 3));
  EXPECT_THAT(Integers("FloorMod", {7, -7, 7, -7}, {2, 2, -2, -2}),
              ElementsAre(1, 1, -1, -1));
  EXPECT_THAT(Integers("Mod", {7, -7, 7, -7}, {2, 2, -2, -2}),
              ElementsAre(1, -1, 1, -1));
}

TEST(BinaryTest, SmallestIntegerByMinusOneDoesNotTrap) {
  const int32_t smallest = std::numeric_limits<int32_t>::min();
  for (const char* op : {"Div", "FloorDiv", "TruncateDiv"}) {
    EXPECT_THAT(Integers(op, {smallest}, {-1}), ElementsAre(smallest)) << op;
  }
  EXPECT_THAT(Integers("FloorMod", {smallest}, {-1}), ElementsAre(0));
}

TEST(BinaryTest, IntegerDivisionByZeroIsAnError) {
  for (const char* op : {"Div", "FloorDiv", "Mod", "FloorMod", "TruncateDiv"}) {
    EXPECT_THAT(Op(op).In(Int(1)).In(Int(0)).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("division by zero")))
        << op;
  }
}

TEST(BinaryTest, IntegersWrapAround) {
  const int32_t largest = std::numeric_limits<int32_t>::max();
  EXPECT_THAT(Integers("Add", {largest}, {1}),
              ElementsAre(std::numeric_limits<int32_t>::min()));
  EXPECT_THAT(Integers("Mul", {65536}, {65536}), ElementsAre(0));
  EXPECT_THAT(Integers("Pow", {3, 2, 5}, {4, 31, 0}),
              ElementsAre(81, std::numeric_limits<int32_t>::min(), 1));
}

TEST(BinaryTest, Comparisons) {
  const Tensor a = Floats({3}, {1, 2, NAN});
  const Tensor b = Floats({3}, {2, 2, NAN});
  const auto compare = [&](const char* op) {
    const auto out = Op(op).In(a).In(b).Run();
    EXPECT_TRUE(out.ok()) << out.status();
    return ValuesOf<bool>(*out);
  };
  EXPECT_THAT(compare("Less"), ElementsAre(1, 0, 0));
  EXPECT_THAT(compare("LessEqual"), ElementsAre(1, 1, 0));
  EXPECT_THAT(compare("Equal"), ElementsAre(0, 1, 0));
  EXPECT_THAT(compare("NotEqual"), ElementsAre(1, 0, 1));
  EXPECT_THAT(compare("GreaterEqual"), ElementsAre(0, 1, 0));
}

TEST(CastTest, FloatsAreCutAndWhatDoesNotFitIsTheSmallest) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("Cast")
          .Type("DstT", tensorflow::DT_INT32)
          .In(Floats({5}, {1.9f, -1.9f, 3e9f, NAN, -INFINITY}))
          .Run());
  const int32_t smallest = std::numeric_limits<int32_t>::min();
  EXPECT_THAT(ValuesOf<int32_t>(out),
              ElementsAre(1, -1, smallest, smallest, smallest));
}

TEST(CastTest, HalfHasTenBitsOfMantissa) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor half,
      Op("Cast")
          .Type("DstT", tensorflow::DT_HALF)
          .In(Floats({7}, {1.0f, -2.0f, 1.0f + 1.0f / 2048, 65504.0f, 65520.0f,
                           5.9604645e-8f, 0.1f}))
          .Run());
  EXPECT_THAT(ValuesOf<uint16_t>(half),
              ElementsAre(0x3c00, 0xc000, 0x3c00, 0x7bff, 0x7c00, 1, 0x2e66));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor back,
      Op("Cast").Type("DstT", tensorflow::DT_FLOAT).In(half).Run());
  EXPECT_THAT(
      ValuesOf<float>(back),
      ElementsAre(1, -2, 1, 65504, INFINITY, 5.9604645e-8f, 0.0999755859375f));
}

TEST(CastTest, BoolsAreZeroAndOne) {
  const bool values[] = {true, false};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor out,
                               Op("Cast")
                                   .Type("DstT", tensorflow::DT_FLOAT)
                                   .In(Tensor::FromValues<bool>({2}, values))
                                   .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(1, 0));
}

TEST(SelectTest, OneConditionPerRow) {
  const bool conditions[] = {true, false};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out, Op("Select")
                            .In(Tensor::FromValues<bool>({2}, conditions))
                            .In(Floats({2, 2}, {1, 2, 3, 4}))
                            .In(Floats({2, 2}, {5, 6, 7, 8}))
                            .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(1, 2, 7, 8));
}

TEST(SelectTest, V2Broadcasts) {
  const bool conditions[] = {true, false};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out, Op("SelectV2")
                            .In(Tensor::FromValues<bool>({2, 1}, conditions))
                            .In(Floats({3}, {1, 2, 3}))
                            .In(Float(9))
                            .Run());
  EXPECT_THAT(ValuesOf<float>(out), ElementsAre(1, 2, 3, 9, 9, 9));
}

// The element of `tensor`, repeated to three dimensions, at these coordinates.
int64_t RepeatedIndex(const Tensor& tensor, const std::vector<int64_t>& at) {
  int64_t index = 0;
  for (int i = 0; i < tensor.rank(); ++i) {
    const int64_t place = at[at.size() - tensor.rank() + i];
    index = index * tensor.dim(i) + (tensor.dim(i) == 1 ? 0 : place);
  }
  return index;
}

TEST(SelectTest, V2RepeatsEachInputItsOwnWay) {
  const std::vector<Shape> shapes = {{4, 3, 5}, {1, 3, 5}, {4, 1, 5}, {4, 3, 1},
                                     {3, 1},    {5},       {1, 3, 1}, {}};
  for (const Shape& a : shapes) {
    for (const Shape& b : shapes) {
      for (const Shape& c : shapes) {
        SCOPED_TRACE(a.ToString() + b.ToString() + c.ToString());
        Tensor condition = *Tensor::Allocate(tensorflow::DT_BOOL, a);
        Tensor yes = *Tensor::Allocate(tensorflow::DT_FLOAT, b);
        Tensor no = *Tensor::Allocate(tensorflow::DT_FLOAT, c);
        for (int64_t i = 0; i < a.num_elements(); ++i) {
          condition.data<bool>()[i] = i % 3 != 1;
        }
        std::iota(yes.data<float>(), yes.data<float>() + b.num_elements(), 0);
        std::iota(no.data<float>(), no.data<float>() + c.num_elements(), 100);
        OPTFARM_ASSERT_OK_AND_ASSIGN(
            const Tensor out,
            Op("SelectV2").In(condition).In(yes).In(no).Run());
        for (int64_t i = 0; i < out.num_elements(); ++i) {
          std::vector<int64_t> at(out.rank());
          int64_t rest = i;
          for (int axis = out.rank() - 1; axis >= 0; --axis) {
            at[axis] = rest % out.dim(axis);
            rest /= out.dim(axis);
          }
          const Tensor& from =
              condition.flat<bool>()[RepeatedIndex(condition, at)] ? yes : no;
          ASSERT_EQ(out.flat<float>()[i],
                    from.flat<float>()[RepeatedIndex(from, at)])
              << "at " << i;
        }
      }
    }
  }
}

TEST(WhereTest, ListsTheCoordinatesOfTrue) {
  const bool values[] = {false, true, true, false};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor out,
      Op("Where").In(Tensor::FromValues<bool>({2, 2}, values)).Run());
  EXPECT_EQ(out.shape(), Shape({2, 2}));
  EXPECT_THAT(ValuesOf<int64_t>(out), ElementsAre(0, 1, 1, 0));
}

}  // namespace
}  // namespace optfarm::runtime
