// Where a layer's products go: to codes, 32-bit codes or floats at once, or
// kept until the ranges are known that they are finished by.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_SINKS_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_SINKS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/fusion/joined_part.h"
#include "engine/runtime/operators/int8_product.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {

// The one step that a tile is finished by; nothing when there are more.
std::optional<Int8Finish> FindInt8Finish(const std::vector<Int8Stage>& stages);

// Finished numbers: rows x columns, which for codes may be part of longer rows.
// OWNERSHIP: all borrowed.
class Int8Output {
 public:
  Int8Output(int64_t columns, const Int8StageFunctions& functions,
             CodePlace codes);
  Int8Output(int64_t columns, const Int8StageFunctions& functions,
             Tensor* wide);

  // Codes from this place on.
  void Point(int64_t row, int64_t column, Int8Finish* finish) const;
  void Store(const Int8Numbers& numbers, int64_t row) const;

 private:
  int Existing(int64_t column) const;

  bool is_codes_;
  int64_t columns_;
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

  bool FindFinish(int64_t row, int64_t column,
                  Int8Finish* finish) const override;
  void Take(const Int8Numbers& numbers, int64_t row) const override;

 private:
  const std::vector<Int8Stage>& stages_;
  const Int8StageFunctions& functions_;
  const Int8Output& output_;
  std::optional<Int8Finish> finish_;
};

// Keeps all tiles: tile behind tile, those of the same rows together.
// OWNERSHIP: `numbers`, which has room for whole tiles, is borrowed.
class Int8KeepingSink final : public Int8Sink {
 public:
  Int8KeepingSink(int64_t blocks, int32_t* numbers)
      : blocks_(blocks), numbers_(numbers) {}

  int32_t* PlaceOf(int64_t row, int rows, int64_t column,
                   int32_t* scratch) const override;
  void Take(const Int8Numbers&, int64_t) const override {}

  // Hands on what was kept of rows in lines.
  void Replay(int64_t rows, int64_t line, ThreadPool* pool,
              const Int8Sink& sink) const;

 private:
  int64_t blocks_;
  int32_t* numbers_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_SINKS_H_
