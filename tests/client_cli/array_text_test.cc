#include "client_cli/tables/array_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace optfarm::client_cli {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using runtime::Shape;
using runtime::Tensor;
using ::testing::HasSubstr;

std::string Floats(const Shape& shape, const std::vector<float>& values,
                   const ArrayTextOptions& options = {}) {
  return ArrayText(Tensor::FromValues<float>(shape, values), options);
}

// Written down by NumPy's rules (versions from 1.14 on).
TEST(ArrayTextTest, PrintsFloatsAsNumPyDoes) {
  EXPECT_EQ(Floats({3}, {1, 2.5, -3}), "[ 1.   2.5 -3. ]");
  EXPECT_EQ(Floats({2, 2}, {1, 2, 3, 4}), "[[1. 2.]\n [3. 4.]]");
  EXPECT_EQ(Floats({1}, {0.1f}), "[0.1]");
  EXPECT_EQ(Floats({2}, {1.0f / 3, 100}), "[  0.33333334 100.        ]");
  EXPECT_EQ(Floats({2}, {1e-5f, 1}), "[1.e-05 1.e+00]");
  EXPECT_EQ(Floats({2}, {1e9f, 1.5f}), "[1.0e+09 1.5e+00]");
  EXPECT_EQ(Floats({3}, {std::numeric_limits<float>::quiet_NaN(), 1,
                         -std::numeric_limits<float>::infinity()}),
            "[ nan   1. -inf]");
  EXPECT_EQ(Floats({}, {0.5f}), "0.5");
  EXPECT_EQ(Floats({}, {3}), "3.0");
  EXPECT_EQ(Floats({0, 3}, {}), "[]");
}

TEST(ArrayTextTest, PrintsOtherTypes) {
  const std::vector<int32_t> ints = {1, -20, 3};
  EXPECT_EQ(ArrayText(Tensor::FromValues<int32_t>(Shape({3}), ints)),
            "[  1 -20   3]");
  const bool bools[] = {true, false};
  EXPECT_EQ(ArrayText(Tensor::FromValues<bool>(Shape({2}), bools)),
            "[ True False]");
  const std::vector<std::string> texts = {"a", "b\n"};
  EXPECT_EQ(ArrayText(Tensor::FromValues<std::string>(Shape({2}), texts)),
            "[b'a' b'b\\n']");
  EXPECT_EQ(ArrayText(Tensor::Scalar<int64_t>(7)), "7");
  const uint16_t halves[] = {0x3c00, 0xc000};
  EXPECT_EQ(ArrayText(Tensor::FromValues<uint16_t>(Shape({2}), halves)
                          .Reinterpreted(tensorflow::DT_HALF)),
            "[ 1. -2.]");
}

TEST(ArrayTextTest, SeparatesBlocksByEmptyLines) {
  std::vector<float> values(8);
  std::iota(values.begin(), values.end(), 0.0f);
  EXPECT_EQ(Floats({2, 2, 2}, values),
            "[[[0. 1.]\n  [2. 3.]]\n\n [[4. 5.]\n  [6. 7.]]]");
}

TEST(ArrayTextTest, WrapsLongLines) {
  std::vector<float> values(30);
  std::iota(values.begin(), values.end(), 0.0f);
  EXPECT_EQ(Floats({30}, values),
            "[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15. "
            "16. 17.\n 18. 19. 20. 21. 22. 23. 24. 25. 26. 27. 28. 29.]");
}

TEST(ArrayTextTest, ShowsLargeArraysByTheirEdges) {
  std::vector<float> values(10000);
  std::iota(values.begin(), values.end(), 0.0f);
  EXPECT_EQ(
      Floats({10000}, values),
      "[0.000e+00 1.000e+00 2.000e+00 ... 9.997e+03 9.998e+03 9.999e+03]");
  ArrayTextOptions options;
  options.suppress = true;
  options.edgeitems = 1;
  EXPECT_EQ(Floats({100, 100}, values, options),
            "[[   0. ...   99.]\n ...\n [9900. ... 9999.]]");
}

TEST(ArrayTextTest, TakesNumPysOptions) {
  ArrayTextOptions options;
  EXPECT_THAT(SetArrayTextOption("precision=3", &options), IsOk());
  EXPECT_EQ(Floats({1}, {1.0f / 3}, options), "[0.333]");
  for (const char* bad :
       {"precision", "precision=x", "digits=3", "suppress=2", "threshold=-1"}) {
    EXPECT_THAT(SetArrayTextOption(bad, &options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad)));
  }
}

}  // namespace
}  // namespace optfarm::client_cli
