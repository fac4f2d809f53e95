// Special functions: the incomplete gamma and beta functions, zeta, polygamma,
// digamma, the inverse error function, Bessel functions. All in double
// precision, rounded at the end.

#include <cmath>
#include <limits>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/math/binary_loop.h"

namespace optfarm::runtime {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kTiny = 1e-300;
constexpr double kPi = 3.14159265358979323846;
// Series and continued fractions that converge at all converge sooner, except
// for arguments so large that the answer is 0 or 1 anyway. They also end where
// a term is NaN: no later one brings a number back.
constexpr int kMaxTerms = 20000;

// x^a e^-x / Gamma(a).
double GammaFactor(double a, double x) {
  return std::exp(a * std::log(x) - x - std::lgamma(a));
}

// The lower incomplete gamma function, regularized, by its power series; for
// x < a + 1 (Abramowitz and Stegun 6.5.29).
double GammaSeries(double a, double x) {
  double term = 1.0 / a;
  double sum = term;
  for (int n = 1; n < kMaxTerms; ++n) {
    term *= x / (a + n);
    sum += term;
    if (!(std::abs(term) >= std::abs(sum) * kEpsilon)) break;
  }
  return sum * GammaFactor(a, x);
}

// The upper one, by its continued fraction (6.5.31) after Lentz.
double GammaFraction(double a, double x) {
  double b = x + 1.0 - a;
  double c = 1.0 / kTiny;
  double d = 1.0 / b;
  double h = d;
  for (int i = 1; i < kMaxTerms; ++i) {
    const double an = -i * (i - a);
    b += 2.0;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1.0 / d;
    h *= d * c;
    if (!(std::abs(d * c - 1.0) >= kEpsilon)) break;
  }
  return h * GammaFactor(a, x);
}

double Igamma(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a <= 0.0 || x < 0.0) return kNan;
  if (x == 0.0) return 0.0;
  if (std::isinf(x)) return std::isinf(a) ? kNan : 1.0;
  if (std::isinf(a)) return 0.0;
  return x < a + 1.0 ? GammaSeries(a, x) : 1.0 - GammaFraction(a, x);
}

double Igammac(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a <= 0.0 || x < 0.0) return kNan;
  if (x == 0.0) return 1.0;
  if (std::isinf(x)) return std::isinf(a) ? kNan : 0.0;
  if (std::isinf(a)) return 1.0;
  return x < a + 1.0 ? 1.0 - GammaSeries(a, x) : GammaFraction(a, x);
}

// The continued fraction of the incomplete beta function (26.5.8).
double BetaFraction(double a, double b, double x) {
  double c = 1.0;
  double d = 1.0 - (a + b) * x / (a + 1.0);
  if (std::abs(d) < kTiny) d = kTiny;
  d = 1.0 / d;
  double h = d;
  const auto step = [&](double factor) {
    d = 1.0 + factor * d;
    if (std::abs(d) < kTiny) d = kTiny;
    c = 1.0 + factor / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1.0 / d;
    h *= d * c;
  };
  for (int m = 1; m < kMaxTerms; ++m) {
    step(m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)));
    step(-(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)));
    if (!(std::abs(d * c - 1.0) >= kEpsilon)) break;
  }
  return h;
}

double Betainc(double a, double b, double x) {
  if (!(a > 0.0) || !(b > 0.0) || !(x >= 0.0 && x <= 1.0)) return kNan;
  if (x == 0.0 || x == 1.0) return x;
  const double factor =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
               a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast on this side of the mean.
  return x < (a + 1.0) / (a + b + 2.0)
             ? factor * BetaFraction(a, b, x) / a
             : 1.0 - factor * BetaFraction(b, a, 1.0 - x) / b;
}

// The Hurwitz zeta function by Euler's and Maclaurin's sum.
double Zeta(double x, double q) {
  // B_2k / (2k)!, k = 1 to 8.
  constexpr double kBernoulli[] = {
      1.0 / 12.0,          -1.0 / 720.0,
      1.0 / 30240.0,       -1.0 / 1209600.0,
      1.0 / 47900160.0,    -691.0 / 1307674368000.0,
      1.0 / 74724249600.0, -3617.0 / 10670622842880000.0};
  constexpr int kTerms = 12;
  if (std::isnan(x) || std::isnan(q) || x < 1.0) return kNan;
  if (x == 1.0) return kInfinity;
  if (q <= 0.0) {
    if (q == std::floor(q)) return kInfinity;
    if (x != std::floor(x)) return kNan;
    if (q < -10000.0) return kNan;
  }
  double sum = 0.0;
  double at = q;
  // The formula below wants `at` to be large beside x too. From a term on that
  // changes nothing, all terms that are left do not either: each is less than
  // half of the one before.
  while (at < std::max<double>(kTerms, x)) {
    const double term = std::pow(at, -x);
    sum += term;
    if (at > kTerms && !(term > std::abs(sum) * kEpsilon)) return sum;
    at += 1.0;
  }
  sum += std::pow(at, 1.0 - x) / (x - 1.0) + 0.5 * std::pow(at, -x);
  double rising = x;
  double power = std::pow(at, -x - 1.0);
  for (size_t k = 0; k < std::size(kBernoulli); ++k) {
    sum += kBernoulli[k] * rising * power;
    const double n = 2.0 * static_cast<double>(k) + 1.0;
    rising *= (x + n) * (x + n + 1.0);
    power /= at * at;
  }
  return sum;
}

double Digamma(double x) {
  if (x == 0.0 || (x < 0.0 && x == std::floor(x))) return kNan;
  double result = 0.0;
  if (x < 0.0) {
    // Reflection: psi(1 - x) - psi(x) = pi cot(pi x).
    result = -kPi / std::tan(kPi * x);
    x = 1.0 - x;
  }
  while (x < 10.0) {
    result -= 1.0 / x;
    x += 1.0;
  }
  const double f = 1.0 / (x * x);
  return result + std::log(x) - 0.5 / x -
         f * (1.0 / 12 -
              f * (1.0 / 120 -
                   f * (1.0 / 252 - f * (1.0 / 240 - f * (1.0 / 132)))));
}

double Polygamma(double n, double x) {
  if (n < 0.0 || n != std::floor(n)) return kNan;
  if (n == 0.0) return Digamma(x);
  const double sign = std::fmod(n, 2.0) == 0.0 ? -1.0 : 1.0;
  return sign * std::tgamma(n + 1.0) * Zeta(n + 1.0, x);
}

// The inverse of the normal distribution's cumulative function, by Newton's
// steps from a rough start.
double Ndtri(double p) {
  if (std::isnan(p) || p < 0.0 || p > 1.0) return kNan;
  if (p == 0.0) return -kInfinity;
  if (p == 1.0) return kInfinity;
  const double tail = std::min(p, 1.0 - p);
  const double t = std::sqrt(-2.0 * std::log(tail));
  // Abramowitz and Stegun 26.2.22.
  double x = t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t));
  for (int i = 0; i < 30; ++i) {
    const double error = 0.5 * std::erfc(x / std::sqrt(2.0)) - tail;
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * kPi);
    if (density == 0.0) break;
    const double step = error / density;
    // Halley's correction.
    const double next = x + step / (1.0 + 0.5 * x * step);
    if (std::abs(next - x) <= 1e-16 * std::abs(next)) break;
    x = next;
  }
  return p < 0.5 ? -x : x;
}

// By Newton's steps on the side of erf or erfc that keeps digits, where the
// normal distribution's function has lost them to 0.5 or 1.
double Erfinv(double x) {
  const double size = std::abs(x);
  if (!(size < 1.0)) return size == 1.0 ? std::copysign(kInfinity, x) : kNan;
  double y = size < 0.5 ? 0.5 * std::sqrt(kPi) * size
                        : -Ndtri(0.5 * (1.0 - size)) / std::sqrt(2.0);
  for (int i = 0; i < 30; ++i) {
    const double error =
        size < 0.5 ? std::erf(y) - size : (1.0 - size) - std::erfc(y);
    const double step = error * 0.5 * std::sqrt(kPi) * std::exp(y * y);
    // Halley's correction.
    const double next = y - step / (1.0 + y * step);
    if (std::abs(next - y) <= 1e-16 * next) break;
    y = next;
  }
  return std::copysign(y, x);
}

// I_order(x) e^-|x|, by the power series or, for large x, the asymptotic one.
double BesselExp(int order, double x) {
  const double size = std::abs(x);
  double sum = 1.0;
  double term = 1.0;
  if (size < 30.0) {
    const double quarter = 0.25 * size * size;
    for (int k = 1; k < 200 && term > sum * kEpsilon; ++k) {
      term *= quarter / (static_cast<double>(k) * (k + order));
      sum += term;
    }
    sum *= std::exp(-size) * (order == 1 ? 0.5 * size : 1.0);
  } else {
    const double mu = 4.0 * order * order;
    for (int k = 1; k < 30; ++k) {
      const double odd = 2.0 * k - 1.0;
      term *= -(mu - odd * odd) / (8.0 * k * size);
      sum += term;
    }
    sum /= std::sqrt(2.0 * kPi * size);
  }
  return order == 1 && x < 0.0 ? -sum : sum;
}

double BesselI0e(double x) { return BesselExp(0, x); }
double BesselI1e(double x) { return BesselExp(1, x); }
double BesselI0(double x) {
  return std::isinf(x) ? kInfinity : BesselExp(0, x) * std::exp(std::abs(x));
}
double BesselI1(double x) {
  return std::isinf(x) ? x : BesselExp(1, x) * std::exp(std::abs(x));
}

template <double (*kFunction)(double)>
absl::StatusOr<std::unique_ptr<Kernel>> MakeUnary(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& x = context->input(0);
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, x.dtype(), x.shape()));
    return VisitFloat(x.dtype(), "x", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        out->data<T>()[i] = static_cast<T>(kFunction(double{x.data<T>()[i]}));
      }
      return absl::OkStatus();
    });
  });
}

template <double (*kFunction)(double, double)>
struct InDoubles {
  template <typename T>
  static T Of(T x, T y) {
    return static_cast<T>(kFunction(double{x}, double{y}));
  }
};

template <double (*kFunction)(double, double)>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBinary(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    return ComputeBroadcast(context, ChooseFloatRow<InDoubles<kFunction>>);
  });
}

// All inputs of one shape, or scalars.
absl::StatusOr<std::unique_ptr<Kernel>> MakeBetainc(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", OPTFARM_FLOAT_TYPES));
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    Shape shape;
    for (int i = 0; i < 3; ++i) {
      OPTFARM_RETURN_IF_ERROR(
          RequireSameDtype(context->input(0), context->input(i)));
      if (context->input(i).rank() > 0) shape = context->input(i).shape();
    }
    for (int i = 0; i < 3; ++i) {
      if (context->input(i).rank() == 0) continue;
      OPTFARM_RETURN_IF_ERROR(RequireShape(context->input(i),
                                           i == 0   ? "a"
                                           : i == 1 ? "b"
                                                    : "x",
                                           shape));
    }
    const DataType dtype = context->input(0).dtype();
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, dtype, shape));
    return VisitFloat(dtype, "a", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      const auto at = [&](int input, int64_t i) {
        const Tensor& tensor = context->input(input);
        return double{tensor.data<T>()[tensor.rank() == 0 ? 0 : i]};
      };
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        out->data<T>()[i] =
            static_cast<T>(Betainc(at(0, i), at(1, i), at(2, i)));
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddSpecialFunctionKernels(KernelCatalog* catalog) {
  catalog->Add("Igamma", MakeBinary<Igamma>);
  catalog->Add("Igammac", MakeBinary<Igammac>);
  catalog->Add("Betainc", MakeBetainc);
  catalog->Add("Zeta", MakeBinary<Zeta>);
  catalog->Add("Polygamma", MakeBinary<Polygamma>);
  catalog->Add("Digamma", MakeUnary<Digamma>);
  catalog->Add("Ndtri", MakeUnary<Ndtri>);
  catalog->Add("Erfinv", MakeUnary<Erfinv>);
  catalog->Add("BesselI0", MakeUnary<BesselI0>);
  catalog->Add("BesselI1", MakeUnary<BesselI1>);
  catalog->Add("BesselI0e", MakeUnary<BesselI0e>);
  catalog->Add("BesselI1e", MakeUnary<BesselI1e>);
}

}  // namespace optfarm::runtime
