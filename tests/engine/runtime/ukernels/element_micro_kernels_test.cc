// Every table of element functions and every softmax that this processor can
// run against the C library, for rows of all lengths around its vectors. Needs
// nothing but the kernels' own files.

#ifdef OPTFARM_FAST_KERNELS
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/runtime/ukernels/float/element_functions.h"
#include "engine/runtime/ukernels/float/softmax.h"
#include "tests/engine/runtime/oracle/float_oracle.h"
#include "tests/engine/runtime/ukernels/micro_kernel_cases.h"
#include "tests/engine/runtime/usable_entries.h"

namespace optfarm::runtime {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// Around one, two and four vectors of 16.
constexpr int kMostLength = 70;

// A function and what it has to be, to within a share of the result.
struct ElementCase {
  const char* name;
  ElementFunction ElementFunctions::*function;
  double (*wanted)(double a, double b);
  double relative = 0;
  // A share of the first operand, where the result is a small part of it.
  double of_operand = 0;
};

double Single(double x) { return static_cast<float>(x); }

// As the reference kernels have it for NaN: the first operand stays.
const ElementCase kElementCases[] = {
    {"add", &ElementFunctions::add,
     [](double a, double b) { return Single(a + b); }},
    {"subtract", &ElementFunctions::subtract,
     [](double a, double b) { return Single(a - b); }},
    {"multiply", &ElementFunctions::multiply,
     [](double a, double b) { return Single(a * b); }},
    {"divide", &ElementFunctions::divide,
     [](double a, double b) { return Single(a / b); }, 2e-7},
    {"maximum", &ElementFunctions::maximum,
     [](double a, double b) { return a < b ? b : a; }},
    {"minimum", &ElementFunctions::minimum,
     [](double a, double b) { return b < a ? b : a; }},
    {"negate", &ElementFunctions::negate, [](double a, double) { return -a; }},
    {"square", &ElementFunctions::square,
     [](double a, double) { return Single(a * a); }},
    {"cube", &ElementFunctions::cube,
     [](double a, double) { return Single(Single(a * a) * a); }},
    {"relu", &ElementFunctions::relu,
     [](double a, double) {
       return oracle::Activated(a, oracle::Activation::kRelu);
     }},
    {"relu6", &ElementFunctions::relu6,
     [](double a, double) {
       return oracle::Activated(a, oracle::Activation::kRelu6);
     }},
    {"sigmoid", &ElementFunctions::sigmoid,
     [](double a, double) { return 1 / (1 + std::exp(-a)); }, 1e-6},
    {"tanh", &ElementFunctions::tanh,
     [](double a, double) { return std::tanh(a); }, 1e-6},
    {"erf", &ElementFunctions::erf,
     [](double a, double) { return std::erf(a); }, 1e-6},
    {"gelu", &ElementFunctions::gelu,
     [](double a, double) { return a * 0.5 * (1 + std::erf(a * M_SQRT1_2)); },
     1e-6, 1e-7},
    {"gelu_by_tanh", &ElementFunctions::gelu_by_tanh,
     [](double a, double) {
       const double u = std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a);
       return a * 0.5 * (1 + std::tanh(u));
     },
     1e-6, 1e-7},
};

void ExpectNear(float got, double wanted, double relative,
                double absolute = 0) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got)) << got;
  } else if (relative == 0 || std::isinf(wanted)) {
    EXPECT_EQ(got, wanted);
  } else {
    // Powers end near the least normal float.
    EXPECT_NEAR(got, wanted, relative * std::abs(wanted) + absolute + 2e-38);
  }
}

class ElementFunctionsKernelTest
    : public ::testing::TestWithParam<const MicroKernel*> {
 protected:
  void Check(const ElementCase& test, const std::vector<float>& a,
             const std::vector<float>& b, int count) {
    const ElementRow row_a = {a.data(), a.size() > 1 || count == 1};
    const ElementRow row_b = {b.data(), b.size() > 1 || count == 1};
    std::vector<float> out(count + 1, 77.0f);
    const auto run = GetParam()->run.element_functions->*test.function;
    run(row_a, row_b, count, out.data());
    for (int i = 0; i < count; ++i) {
      const float x = a[a.size() == 1 ? 0 : i], y = b[b.size() == 1 ? 0 : i];
      SCOPED_TRACE(::testing::Message() << test.name << " of " << x << ", " << y
                                        << ", " << i << " of " << count);
      ExpectNear(out[i], test.wanted(x, y), test.relative,
                 std::isfinite(x) ? test.of_operand * std::abs(x) : 0);
    }
    EXPECT_EQ(out[count], 77.0f) << test.name << " of " << count;
  }
  Random random_;
};

TEST_P(ElementFunctionsKernelTest, RowsOfAnyLengthAreTheOracles) {
  for (const ElementCase& test : kElementCases) {
    for (int count = 1; count <= kMostLength; ++count) {
      const std::vector<float> a = random_.Reals(count, -20, 20);
      const std::vector<float> b = random_.Reals(count, -20, 20);
      Check(test, a, b, count);
      // One value that stands for all.
      Check(test, {a[0]}, b, count);
      Check(test, a, {b[0]}, count);
      if (HasFailure()) return;
    }
  }
}

TEST_P(ElementFunctionsKernelTest, ExtremeValuesAndNanAreTheOracles) {
  const std::vector<float> values = {
      0.0f,   1e-30f, -1e-30f, 0.624f,    0.626f,     6.0f,  6.5f,   87.0f,
      -87.0f, 90.0f,  -90.0f,  kInfinity, -kInfinity, 3e38f, -3e38f, kNan};
  for (const ElementCase& test : kElementCases) {
    for (const float b : values) {
      Check(test, values, {b}, static_cast<int>(values.size()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, ElementFunctionsKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kElementFunctions)),
    EntryName);

class SoftmaxKernelTest : public ::testing::TestWithParam<const MicroKernel*> {
 protected:
  // Rows of `columns` logits up to `most`, some of them -infinity.
  void Check(int rows, int columns, float most, bool has_bias,
             bool in_place = false) {
    std::vector<float> in = random_.Reals(rows * columns, -most, most);
    for (size_t i = 1; i < in.size(); i += 7) {
      if (columns > 7) in[i] = -kInfinity;
    }
    const std::vector<float> bias = random_.Reals(columns, -1, 1);
    std::vector<std::vector<double>> wanted;
    for (int r = 0; r < rows; ++r) {
      std::vector<double> row;
      for (int c = 0; c < columns; ++c) {
        row.push_back(double{in[r * columns + c]} + (has_bias ? bias[c] : 0));
      }
      wanted.push_back(oracle::Softmax(row));
    }
    std::vector<float> apart(in.size() + 1, 77.0f);
    std::vector<float>& out = in_place ? in : apart;
    GetParam()->run.softmax({in.data(), has_bias ? bias.data() : nullptr, rows,
                             columns, out.data()});
    for (int i = 0; i < rows * columns; ++i) {
      // What is left of a difference after its rounding counts in its power.
      ASSERT_NEAR(
          out[i], wanted[i / columns][i % columns],
          (2e-6 + most * 1.2e-7) * wanted[i / columns][i % columns] + 1e-37)
          << rows << " x " << columns << ", at " << i;
    }
    if (!in_place) {
      ASSERT_EQ(apart.back(), 77.0f);
    }
  }
  Random random_;
};

TEST_P(SoftmaxKernelTest, RowsOfAnyLengthAreTheOracles) {
  for (int columns = 1; columns <= kMostLength; ++columns) {
    for (const int rows : {1, 2, 3}) {
      for (const bool has_bias : {false, true}) {
        Check(rows, columns, 5, has_bias);
        Check(rows, columns, 30, has_bias);
        Check(rows, columns, 5, has_bias, /*in_place=*/true);
        if (HasFatalFailure()) return;
      }
    }
  }
  Check(1, 1001, 10, true);
}

TEST_P(SoftmaxKernelTest, RowsMayBeLeftToBeMultipliedByTheReciprocals) {
  for (const int columns : {1, 7, 19, 64}) {
    const std::vector<float> in = random_.Reals(3 * columns, -9, 9);
    std::vector<float> whole(in.size()), parts(in.size()), reciprocals(4, 7);
    GetParam()->run.softmax({in.data(), nullptr, 3, columns, whole.data()});
    GetParam()->run.softmax(
        {in.data(), nullptr, 3, columns, parts.data(), reciprocals.data()});
    for (int i = 0; i < 3 * columns; ++i) {
      EXPECT_EQ(parts[i] * reciprocals[i / columns], whole[i]);
    }
    EXPECT_EQ(reciprocals[3], 7.0f);
  }
}

TEST_P(SoftmaxKernelTest, NanMakesItsRowNanAndNoOther) {
  for (const int at : {0, 5, 18}) {
    std::vector<float> in(2 * 19, 1.0f), out(2 * 19);
    in[at] = kNan;
    GetParam()->run.softmax({in.data(), nullptr, 2, 19, out.data()});
    for (int i = 0; i < 19; ++i) {
      EXPECT_TRUE(std::isnan(out[i])) << at << ", " << i;
      EXPECT_NEAR(out[19 + i], 1.0 / 19, 1e-7);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, SoftmaxKernelTest,
    ::testing::ValuesIn(UsableEntries(MicroKernelKind::kSoftmax)), EntryName);

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
