#include "engine/optimize/report/layer_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace optfarm::optimize {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::TensorComparison Layer(const std::string& name, double snr,
                           int64_t samples = 1) {
  v1::TensorComparison layer;
  layer.set_name(name);
  layer.set_op("Conv2D");
  layer.set_snr_db(snr);
  layer.set_samples(samples);
  return layer;
}

TEST(LayerChartTest, DrawsABarForEachComparedLayer) {
  const std::string svg = DrawLayers(
      {Layer("first", 31.25), Layer("second", 7), Layer("no", 1, 0)});
  EXPECT_THAT(svg, AllOf(HasSubstr(">first<"), HasSubstr(">31.2<"),
                         HasSubstr(">second<"), Not(HasSubstr(">no<"))));
  EXPECT_EQ(svg, DrawLayers({Layer("first", 31.25), Layer("second", 7)}));
}

TEST(LayerChartTest, NamesCannotBreakTheDocument) {
  const std::string svg = DrawLayers({Layer("</svg><script>&\"'\n\xff", 20)});
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&amp;&quot;&apos;&#10;?"));
}

TEST(LayerChartTest, ValuesThatAreNoNumbersStayOnTheScale) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string svg =
      DrawLayers({Layer("a", kInfinity), Layer("b", -kInfinity),
                  Layer("c", std::numeric_limits<double>::quiet_NaN())});
  EXPECT_THAT(svg, AllOf(HasSubstr(">equal<"), HasSubstr(">lost<"),
                         HasSubstr(">not comparable<")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace optfarm::optimize
