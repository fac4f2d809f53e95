#include "server/services/student.h"

#include <cmath>

namespace optfarm::server {
namespace {

constexpr double kPi = 3.141592653589793;

// Whole degrees of freedom have a finite sum (Abramowitz and Stegun 26.7.3,
// 26.7.4).
double Probability(double t, int degrees) {
  const double angle = std::atan(t / std::sqrt(degrees));
  const double sine = std::sin(angle);
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1;
  double sum = odd && degrees == 1 ? 0 : term;
  for (int k = odd ? 3 : 2; k < degrees; k += 2) {
    term *= (k - 1.0) / k * cosine * cosine;
    sum += term;
  }
  const double within = odd ? 2 / kPi * (angle + sine * sum) : sine * sum;
  return 0.5 + within / 2;
}

}  // namespace

double StudentQuantile(double p, int degrees) {
  double low = 0, high = 1;
  while (Probability(high, degrees) < p) high *= 2;
  while (high - low > 5e-7 * high) {
    const double middle = (low + high) / 2;
    (Probability(middle, degrees) < p ? low : high) = middle;
  }
  return high;
}

}  // namespace optfarm::server
