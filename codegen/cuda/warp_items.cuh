// The items of a warp's tile in shared memory, where lanes that loaded rows of them find their neighbours.
//
// Shared memory moves 16 bytes at a time, from 8 places: those that 8 lanes ask for, be it for rows or for
// their neighbours, lie in different banks after a swizzle. Values of several columns are cut into planes of
// as many bytes as divide their size (of four float64 two planes of 16 bytes, of three three of 8), each of
// which is swizzled alike: values that lie side by side, 32 bytes each, would all begin in the same few
// banks.
#pragma once

#include "tile.cuh"

namespace kelpie {

/// Of as many bytes, moved at once.
template <int kBytes>
struct alignas(kBytes) PlaneUnit {
  uint32_t word[kBytes / 4];
};
template <>
struct PlaneUnit<2> {
  uint16_t word;
};
template <>
struct PlaneUnit<1> {
  uint8_t word;
};

/// What a plane has of a value: all of it, where one suffices.
template <class Value, int kPlanes>
struct PlanePart {
  using Type = PlaneUnit<int(sizeof(Value)) / kPlanes>;
};
template <class Value>
struct PlanePart<Value, 1> {
  using Type = Value;
};

/// kOfLane neighbours of each lane, of which kMost at most are moved at once.
template <class Value, int kOfLane, int kMost>
struct WarpItems {
  static constexpr int kUnitBytes = alignmentOf(sizeof(Value));
  static constexpr int kPlanes = sizeof(Value) / kUnitBytes;
  static constexpr int kOfPlace = 16 / kUnitBytes;
  static constexpr int kPlaces = (kOfLane + kOfPlace - 1) / kOfPlace;  ///< of a lane
  static constexpr int kMask = (kPlaces < 8 ? kPlaces - 1 : 7) * kOfPlace;
  static constexpr int kMoved = kOfPlace < kMost ? kOfPlace : kMost;  ///< neighbours moved at once
  using Unit = typename PlanePart<Value, kPlanes>::Type;
  using Units = Pack<Unit, kMoved>;
  using Moved = Pack<Value, kMoved>;

  struct Shared {
    alignas(16) Unit planes[kPlanes][32 * kOfLane];
  };

  /// kMoved items from an offset that they divide.
  static __device__ __forceinline__ Moved load(const Shared& shared, int offset) {
    Parts parts[kMoved];
    KELPIE_UNROLL
    for (int plane = 0; plane < kPlanes; ++plane) {
      const Units units = *reinterpret_cast<const Units*>(shared.planes[plane] + place(offset));
      KELPIE_UNROLL
      for (int k = 0; k < kMoved; ++k) parts[k].unit[plane] = units.item[k];
    }
    Moved moved;
    KELPIE_UNROLL
    for (int k = 0; k < kMoved; ++k) moved.item[k] = parts[k].value;
    return moved;
  }
  static __device__ __forceinline__ void store(Shared& shared, int offset, const Moved& moved) {
    KELPIE_UNROLL
    for (int plane = 0; plane < kPlanes; ++plane) {
      Units units;
      KELPIE_UNROLL
      for (int k = 0; k < kMoved; ++k) {
        Parts parts;
        parts.value = moved.item[k];
        units.item[k] = parts.unit[plane];
      }
      *reinterpret_cast<Units*>(shared.planes[plane] + place(offset)) = units;
    }
  }
  static __device__ __forceinline__ Value loadOne(const Shared& shared, int offset) {
    Parts parts;
    KELPIE_UNROLL
    for (int plane = 0; plane < kPlanes; ++plane) parts.unit[plane] = shared.planes[plane][place(offset)];
    return parts.value;
  }
  static __device__ __forceinline__ void storeOne(Shared& shared, int offset, const Value& value) {
    Parts parts;
    parts.value = value;
    KELPIE_UNROLL
    for (int plane = 0; plane < kPlanes; ++plane) shared.planes[plane][place(offset)] = parts.unit[plane];
  }

  /// Of an item in each plane.
  static __device__ __forceinline__ int place(int offset) { return offset ^ (offset >> 3 & kMask); }

 private:
  union Parts {
    Value value;
    Unit unit[kPlanes];
    __device__ Parts() : unit{} {}
  };
};

}  // namespace kelpie
