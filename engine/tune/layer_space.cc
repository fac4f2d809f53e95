#include "engine/tune/layer_space.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "engine/tune/quality.h"

namespace optfarm::tune {
namespace {

// Noise of a result that differs in nothing that could be measured.
constexpr double kLeastNoise = 1e-20;
// A layer that costs nothing in float would divide by zero.
constexpr double kLeastCost = 0.01;
// Steps of the search for the noise that stays.
constexpr int kRestSteps = 64;

double NoiseOf(double snr_db) {
  if (std::isnan(snr_db) || std::isinf(snr_db)) return 0;
  return std::pow(10.0, -snr_db / 10);
}

double SnrOf(double noise) {
  return -10 * std::log10(std::max(noise, kLeastNoise));
}

// The same numbers, also where both are not.
bool IsSame(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

LayerSpace::LayerSpace(const v1::Report& report) {
  const v1::LayerSensitivity* last = nullptr;
  for (const v1::LayerSensitivity& layer : report.sensitivity()) {
    // Layers that were measured together have the same numbers, bit for bit.
    const bool joins = last != nullptr && !std::isnan(layer.output_snr_db()) &&
                       IsSame(last->output_snr_db(), layer.output_snr_db()) &&
                       IsSame(last->alone_snr_db(), layer.alone_snr_db());
    if (!joins) {
      units_.emplace_back().noise = NoiseOf(layer.output_snr_db());
    }
    units_.back().layers.push_back(layer.name());
    units_.back().float_cost_us +=
        1000 * (layer.float_milliseconds() - layer.result_milliseconds());
    last = &layer;
  }
  for (const LayerUnit& unit : units_) sum_ += unit.noise;
  whole_noise_ = NoiseOf(WorstSnr(report));
  Fit();
}

std::vector<Subset> LayerSpace::Choices() const {
  const auto count = static_cast<int>(units_.size());
  const std::vector<std::function<double(const LayerUnit&)>> orders = {
      [](const LayerUnit& unit) { return unit.noise; },
      [](const LayerUnit& unit) {
        return unit.noise / std::max(unit.float_cost_us, kLeastCost);
      },
      [](const LayerUnit& unit) { return -unit.float_cost_us; }};
  std::set<Subset> found;
  for (const auto& worth : orders) {
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return worth(units_[a]) > worth(units_[b]);
    });
    for (int size = 0; size <= count; ++size) {
      Subset subset(order.begin(), order.begin() + size);
      std::sort(subset.begin(), subset.end());
      found.insert(std::move(subset));
    }
  }
  std::vector<Subset> choices(found.begin(), found.end());
  std::stable_sort(
      choices.begin(), choices.end(),
      [](const Subset& a, const Subset& b) { return a.size() < b.size(); });
  return choices;
}

std::vector<std::string> LayerSpace::LayersOf(const Subset& subset) const {
  std::vector<std::string> layers;
  for (const int unit : subset) {
    layers.insert(layers.end(), units_[unit].layers.begin(),
                  units_[unit].layers.end());
  }
  return layers;
}

double LayerSpace::NoiseIn8Bits(const Subset& in_float) const {
  double noise = sum_;
  for (const int unit : in_float) noise -= units_[unit].noise;
  return std::max(noise, 0.0);
}

double LayerSpace::PredictSnr(const Subset& subset) const {
  return SnrOf(rest_ + scale_ * NoiseIn8Bits(subset));
}

double LayerSpace::FloatCost(const Subset& subset) const {
  double cost = 0;
  for (const int unit : subset) cost += units_[unit].float_cost_us;
  return cost;
}

void LayerSpace::Rebase(double snr_db) {
  whole_noise_ = NoiseOf(snr_db);
  Fit();
}

void LayerSpace::Learn(const Subset& subset, double snr_db) {
  known_.emplace_back(subset, snr_db);
  Fit();
}

// Everything quantized stays exact; how much of its noise is the sum's and how
// much stays is what the other known ones decide, by least squares of decibels.
void LayerSpace::Fit() {
  if (sum_ <= 0) {
    rest_ = whole_noise_;
    scale_ = 0;
    return;
  }
  double best = -1;
  for (int step = 0; step < kRestSteps; ++step) {
    const double rest = whole_noise_ * static_cast<double>(step) / kRestSteps;
    const double scale = (whole_noise_ - rest) / sum_;
    double error = 0;
    for (const auto& [subset, snr_db] : known_) {
      const double predicted = SnrOf(rest + scale * NoiseIn8Bits(subset));
      error += (predicted - snr_db) * (predicted - snr_db);
    }
    // Without any: layers by themselves are what they are together.
    if (known_.empty()) error = std::abs(scale - 1);
    if (best >= 0 && error >= best) continue;
    best = error;
    rest_ = rest;
    scale_ = scale;
  }
}

}  // namespace optfarm::tune
