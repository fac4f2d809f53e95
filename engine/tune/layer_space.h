// Which layers of an 8-bit net stay in float: the choices, and what each is
// predicted to cost and to give.

#ifndef OPTFARM_ENGINE_TUNE_LAYER_SPACE_H_
#define OPTFARM_ENGINE_TUNE_LAYER_SPACE_H_

#include <string>
#include <utility>
#include <vector>

#include "optfarm/v1/report.pb.h"

namespace optfarm::tune {

// Layers that are quantized or left in float together, because their channels
// are scaled together.
struct LayerUnit {
  std::vector<std::string> layers;
  // Noise power over signal power of the worst output when only this unit is
  // quantized.
  double noise = 0;
  // UNITS: microseconds on one thread of the worker that measured it: what the
  // unit takes longer in float.
  double float_cost_us = 0;
};

// Indices of units that stay in float, ascending.
using Subset = std::vector<int>;

// THREADS: one at a time.
class LayerSpace {
 public:
  LayerSpace() = default;
  // From the report of a recipe that quantized every layer and measured each
  // alone (verification.sensitivity). Empty without that.
  explicit LayerSpace(const v1::Report& report);

  const std::vector<LayerUnit>& units() const { return units_; }

  // The choices: the first k units in the orders of noise, of noise for each
  // microsecond that float costs, and of cost; each once, smaller ones first.
  // All quantized and all in float are among them.
  std::vector<Subset> Choices() const;

  // Names for the recipe's keep_float.nodes.
  std::vector<std::string> LayersOf(const Subset& subset) const;

  // Signal to noise of the worst output. UNITS: decibel.
  double PredictSnr(const Subset& subset) const;

  // What the subset costs over everything quantized, on the worker.
  // UNITS: microseconds.
  double FloatCost(const Subset& subset) const;

  // Everything quantized has this signal to noise from now on: ranges are taken
  // in another way. UNITS: decibel.
  void Rebase(double snr_db);

  // A measured one; later predictions keep closer to it.
  void Learn(const Subset& subset, double snr_db);

 private:
  double NoiseIn8Bits(const Subset& in_float) const;
  void Fit();

  std::vector<LayerUnit> units_;
  // Noise of everything quantized, and of all units one by one.
  double whole_noise_ = 0;
  double sum_ = 0;
  // Noise that no choice removes, and the share of the sum that the others'
  // interplay leaves.
  double rest_ = 0;
  double scale_ = 1;
  std::vector<std::pair<Subset, double>> known_;
};

}  // namespace optfarm::tune

#endif  // OPTFARM_ENGINE_TUNE_LAYER_SPACE_H_
