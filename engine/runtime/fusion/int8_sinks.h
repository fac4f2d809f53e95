// Where a layer's products go: to quantized values, accumulators or floats at
// once, or kept until the ranges of their epilogue are known.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_SINKS_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_SINKS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/fusion/joined_part.h"
#include "engine/runtime/operators/int8_gemm.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {

// The stages as an epilogue; nothing when it takes more than one.
std::optional<Int8Epilogue> FindInt8Epilogue(
    const std::vector<Int8Stage>& stages);

// The result: rows x columns, which may be part of longer rows where they are
// quantized. `nr`: the columns of a panel.
// OWNERSHIP: all borrowed.
class Int8Output {
 public:
  Int8Output(int64_t columns, int nr, const Int8StageFunctions& functions,
             QuantizedPlace values);
  Int8Output(int64_t columns, int nr, const Int8StageFunctions& functions,
             Tensor* accumulators);

  // Makes the epilogue store quantized values from this place on.
  void Point(int64_t row, int64_t column, Int8Epilogue* epilogue) const;
  void Store(const Int8Accumulators& tile, int64_t row) const;

 private:
  int Existing(int64_t column) const;

  bool is_quantized_;
  int64_t columns_;
  int nr_;
  // UNITS: elements from row to row.
  int64_t stride_;
  const Int8StageFunctions& functions_;
  uint8_t* out_;
};

// Runs the stages on a tile as soon as it is multiplied. OWNERSHIP: all
// borrowed.
class Int8StagesSink final : public Int8Sink {
 public:
  Int8StagesSink(const std::vector<Int8Stage>& stages,
                 const Int8StageFunctions& functions, const Int8Output& output);

  bool FindEpilogue(int64_t row, int64_t column,
                    Int8Epilogue* epilogue) const override;
  void Take(const Int8Accumulators& tile, int64_t row) const override;

 private:
  const std::vector<Int8Stage>& stages_;
  const Int8StageFunctions& functions_;
  const Int8Output& output_;
  std::optional<Int8Epilogue> epilogue_;
};

// Keeps all tiles: tile behind tile, those of the same rows together.
// OWNERSHIP: `accumulators`, which has room for whole tiles, is borrowed.
class Int8KeepingSink final : public Int8Sink {
 public:
  Int8KeepingSink(const Int8Gemm& gemm, int32_t* accumulators)
      : gemm_(gemm), accumulators_(accumulators) {}

  int32_t* PlaceOf(int64_t row, int rows, int64_t column,
                   int32_t* scratch) const override;
  void Take(const Int8Accumulators&, int64_t) const override {}

  // Hands on what was kept.
  void Replay(ThreadPool* pool, const Int8Sink& sink) const;

 private:
  const Int8Gemm& gemm_;
  int32_t* accumulators_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_SINKS_H_
