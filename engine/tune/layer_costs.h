// What leaving layers in float costs on a device, layer by layer, from the
// steps that were measured there.

#ifndef OPTFARM_ENGINE_TUNE_LAYER_COSTS_H_
#define OPTFARM_ENGINE_TUNE_LAYER_COSTS_H_

#include <vector>

#include "engine/tune/latency_table.h"
#include "engine/tune/layer_space.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::tune {

// THREADS: const methods may be called from several at once.
class LayerCosts {
 public:
  LayerCosts() = default;
  // From all of a net in float and all of it in 8 bits, both on one device with
  // Measurement.steps. Empty where the steps do not tell most units.
  LayerCosts(const LayerSpace& space, const v1::Measurement& in_float,
             const v1::Measurement& in_8_bits, const LatencyTable& table);

  bool empty() const { return in_float_us_.empty(); }

  // What the subset in float takes longer than everything in 8 bits: its
  // layers, and conversions wherever precision changes along the order of
  // computation. What is around the net is float. UNITS: microseconds.
  double Sum(const Subset& in_float) const;
  // UNITS: microseconds. Sum of the magnitudes of what single units cost.
  double Magnitude() const;

 private:
  // By unit: what it takes longer in float; negative where float is faster.
  std::vector<double> in_float_us_;
  // Before each unit, and behind the last.
  std::vector<double> conversion_us_;
};

}  // namespace optfarm::tune

#endif  // OPTFARM_ENGINE_TUNE_LAYER_COSTS_H_
