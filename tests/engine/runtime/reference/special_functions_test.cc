// Special functions of doubles against values of mpmath at 30 digits. The
// recorded graphs, which are floats, cannot see digits beyond the seventh.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

struct Example {
  std::string op;
  std::vector<double> arguments;
  double value;
};

double ValueOf(const Example& example) {
  Op op(example.op);
  op.Type("T", tensorflow::DT_DOUBLE);
  for (const double x : example.arguments) op.In(Tensor::Scalar<double>(x));
  const absl::StatusOr<Tensor> value = op.Run();
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? value->data<double>()[0] : NAN;
}

TEST(SpecialFunctionsTest, DoublesHaveTwelveDigits) {
  for (const Example& example : std::vector<Example>{
           {"Igamma", {3.7, 2.5}, 0.29854513070091980821},
           {"Igammac", {0.5, 9}, 0.000022090496998585441373},
           {"Igammac", {200, 230}, 0.020331143328836234672},
           {"Betainc", {2, 3.5, 0.25}, 0.31496037395957489856},
           {"Betainc", {100, 30, 0.875}, 0.99947151890327940897},
           {"Zeta", {2.5, 1.5}, 0.59025638507643129008},
           {"Zeta", {50, 12}, 1.1194415577850897468e-54},
           {"Zeta", {120, 100}, 1.4379617669402425672e-240},
           {"Polygamma", {3, 0.5}, 97.409091034002437236},
           {"Digamma", {-2.25}, 4.1585835646579722748},
           {"Erfinv", {1e-10}, 8.8622692545275804594e-11},
           {"Erfinv", {-0.75}, -0.81341984759761854169},
           {"Erfinv", {1 - std::ldexp(1, -50)}, 5.6861284413103909801},
           {"Ndtri", {0.001}, -3.0902323061678135354},
           {"BesselI0e", {40}, 0.063278279875235330262},
           {"BesselI1e", {0.5}, 0.15642080318487169714},
           {"BesselI0", {3}, 4.8807925858650240856},
           {"BesselI1", {-2}, -1.5906368546373290634}}) {
    const double value = ValueOf(example);
    EXPECT_LE(std::abs(value - example.value), 1e-12 * std::abs(example.value))
        << example.op << " of " << example.arguments[0] << ": " << value;
  }
}

TEST(SpecialFunctionsTest, ZetaOfEndlessArgumentsEnds) {
  for (const double x : std::vector<double>{1e9, 1e300, INFINITY}) {
    EXPECT_EQ(ValueOf({"Zeta", {x, 1.5}, 0}), 0) << x;
    EXPECT_EQ(ValueOf({"Zeta", {x, 13}, 0}), 0) << x;
    EXPECT_EQ(ValueOf({"Zeta", {x, 0.5}, 0}), INFINITY) << x;
  }
}

TEST(SpecialFunctionsTest, InfiniteArgumentsHaveTheirLimits) {
  for (const Example& example :
       std::vector<Example>{{"Igamma", {INFINITY, 2}, 0},
                            {"Igamma", {2, INFINITY}, 1},
                            {"Igammac", {INFINITY, 2}, 1},
                            {"Igammac", {2, INFINITY}, 0},
                            {"Polygamma", {1, INFINITY}, 0},
                            {"Digamma", {INFINITY}, INFINITY},
                            {"BesselI0e", {-INFINITY}, 0},
                            {"BesselI1e", {INFINITY}, 0},
                            {"BesselI0", {-INFINITY}, INFINITY},
                            {"BesselI1", {-INFINITY}, -INFINITY}}) {
    EXPECT_EQ(ValueOf(example), example.value)
        << example.op << " of " << example.arguments[0];
  }
  for (const Example& example :
       std::vector<Example>{{"Igamma", {INFINITY, INFINITY}, 0},
                            {"Betainc", {INFINITY, 1, 0.5}, 0},
                            {"Betainc", {1, INFINITY, 0.5}, 0},
                            {"Digamma", {-INFINITY}, 0},
                            {"Ndtri", {INFINITY}, 0},
                            {"Erfinv", {INFINITY}, 0}}) {
    EXPECT_TRUE(std::isnan(ValueOf(example)))
        << example.op << " of " << example.arguments[0];
  }
}

// A series that went on after its terms are NaN would take 20000 of them for
// each element: together minutes.
TEST(SpecialFunctionsTest, SeriesEndWithTheirFirstNan) {
  constexpr int64_t kCount = 400000;
  const auto run = [&](const std::string& op, std::vector<double> arguments) {
    Op made(op);
    made.Type("T", tensorflow::DT_DOUBLE);
    for (const double x : arguments) {
      made.In(Tensor::FromValues<double>(Shape({kCount}),
                                         std::vector<double>(kCount, x)));
    }
    const absl::StatusOr<Tensor> value = made.Run();
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_TRUE(std::isnan(value->data<double>()[kCount - 1])) << op;
  };
  run("Betainc", {INFINITY, 1, 0.5});
  run("Betainc", {1e308, 1e308, 0.5});
  run("Betainc", {2, INFINITY, 0.01});
  run("Igamma", {NAN, 1});
  run("Igammac", {1, NAN});
}

TEST(SpecialFunctionsTest, ErfinvEndsWhereErfDoes) {
  EXPECT_EQ(ValueOf({"Erfinv", {0}, 0}), 0);
  EXPECT_EQ(ValueOf({"Erfinv", {1}, 0}), INFINITY);
  EXPECT_EQ(ValueOf({"Erfinv", {-1}, 0}), -INFINITY);
  EXPECT_TRUE(std::isnan(ValueOf({"Erfinv", {1.5}, 0})));
}

}  // namespace
}  // namespace optfarm::runtime
