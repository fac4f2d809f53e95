// What transforms of one size need besides values: passes and roots of one.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_FOURIER_TABLES_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_FOURIER_TABLES_H_

#include <cstdint>
#include <vector>

#include "engine/runtime/ukernels/audio/audio_functions.h"

namespace optfarm::runtime {

class FourierTables {
 public:
  // UNITS: complex values; places of a vector. REQUIRES: size is a power of two
  // from kLeastFourier on, lanes are 4 or 8.
  FourierTables(int64_t size, int lanes);

  // OWNERSHIP: the tables' own.
  void PutInto(SpectrogramSlices* slices) const;

 private:
  struct Roots {
    // exp(-2 pi i numerator / denominator).
    void Add(int64_t numerator, int64_t denominator);
    // Those of a turn that FourierRoots counts.
    void AddTurn(int radix, int64_t numerator, int64_t denominator);

    std::vector<double> re;
    std::vector<double> im;
  };

  void AddPasses();
  void AddRows();

  const int64_t size_;
  const int lanes_;
  std::vector<FourierPass> passes_;
  // By pass.
  std::vector<Roots> turns_;
  Roots columns_;
  Roots places_;
  Roots apart_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_AUDIO_FOURIER_TABLES_H_
