;; Attention of one token over the keys and values of its row, in float32 lanes of four. Addresses are bytes; every
;; vector's length is a multiple of four numbers. The same bits on every machine: the order of all sums is written here.
(module
  (memory (export "memory") 16)

  ;; e^x for four numbers <= 88: 2^n times a polynomial in the rest (Cephes), relative error below 2e-7.
  (func $exp (param $x v128) (result v128)
    (local $n v128) (local $y v128)
    (local.set $x (f32x4.max (local.get $x) (v128.const f32x4 -87.3 -87.3 -87.3 -87.3)))
    (local.set $n
      (f32x4.floor
        (f32x4.add
          (f32x4.mul (local.get $x) (v128.const f32x4 1.44269504 1.44269504 1.44269504 1.44269504))
          (v128.const f32x4 0.5 0.5 0.5 0.5))))
    ;; log 2 in two parts: the first has few bits, so that its multiples are exact.
    (local.set $x
      (f32x4.sub (local.get $x)
        (f32x4.mul (local.get $n) (v128.const f32x4 0.693359375 0.693359375 0.693359375 0.693359375))))
    (local.set $x
      (f32x4.add (local.get $x)
        (f32x4.mul (local.get $n) (v128.const f32x4 2.12194440e-4 2.12194440e-4 2.12194440e-4 2.12194440e-4))))
    (local.set $y (v128.const f32x4 1.9875691500e-4 1.9875691500e-4 1.9875691500e-4 1.9875691500e-4))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $x))
      (v128.const f32x4 1.3981999507e-3 1.3981999507e-3 1.3981999507e-3 1.3981999507e-3)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $x))
      (v128.const f32x4 8.3334519073e-3 8.3334519073e-3 8.3334519073e-3 8.3334519073e-3)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $x))
      (v128.const f32x4 4.1665795894e-2 4.1665795894e-2 4.1665795894e-2 4.1665795894e-2)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $x))
      (v128.const f32x4 1.6666665459e-1 1.6666665459e-1 1.6666665459e-1 1.6666665459e-1)))
    (local.set $y (f32x4.add (f32x4.mul (local.get $y) (local.get $x))
      (v128.const f32x4 5.0000001201e-1 5.0000001201e-1 5.0000001201e-1 5.0000001201e-1)))
    (local.set $y
      (f32x4.add
        (f32x4.add
          (f32x4.mul (local.get $y) (f32x4.mul (local.get $x) (local.get $x)))
          (local.get $x))
        (v128.const f32x4 1 1 1 1)))
    (f32x4.mul (local.get $y)
      (i32x4.shl
        (i32x4.add (i32x4.trunc_sat_f32x4_s (local.get $n)) (v128.const i32x4 127 127 127 127))
        (i32.const 23))))

  (func $lanes (param $x v128) (result f32)
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $x)) (f32x4.extract_lane 1 (local.get $x)))
      (f32.add (f32x4.extract_lane 2 (local.get $x)) (f32x4.extract_lane 3 (local.get $x)))))

  ;; out[t] = scale * (x . keys[t]) for t < count: x has `width` bytes, keys lie `stride` bytes apart. Returns the largest.
  (func $dots (export "dots")
    (param $x i32) (param $keys i32) (param $count i32) (param $stride i32) (param $width i32) (param $scale f32)
    (param $out i32) (result f32)
    (local $j i32) (local $sum v128) (local $dot f32) (local $top f32)
    (local.set $top (f32.const -inf))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        ;; Heads of sixteen, as the presets have, go without a loop: the same sum in the same order.
        (if (i32.eq (local.get $width) (i32.const 64))
          (then
            (local.set $sum
              (f32x4.add
                (f32x4.add
                  (f32x4.add
                    (f32x4.mul (v128.load (local.get $x)) (v128.load (local.get $keys)))
                    (f32x4.mul (v128.load offset=16 (local.get $x)) (v128.load offset=16 (local.get $keys))))
                  (f32x4.mul (v128.load offset=32 (local.get $x)) (v128.load offset=32 (local.get $keys))))
                (f32x4.mul (v128.load offset=48 (local.get $x)) (v128.load offset=48 (local.get $keys))))))
          (else
            (local.set $sum (v128.const f32x4 0 0 0 0))
            (local.set $j (i32.const 0))
            (loop $four
              (local.set $sum
                (f32x4.add (local.get $sum)
                  (f32x4.mul
                    (v128.load (i32.add (local.get $x) (local.get $j)))
                    (v128.load (i32.add (local.get $keys) (local.get $j))))))
              (br_if $four
                (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 16))) (local.get $width))))))
        (local.set $dot (f32.mul (local.get $scale) (call $lanes (local.get $sum))))
        (f32.store (local.get $out) (local.get $dot))
        (local.set $top (f32.max (local.get $top) (local.get $dot)))
        (local.set $keys (i32.add (local.get $keys) (local.get $stride)))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))
    (local.get $top))

  ;; out = softmax(scale * q . keys) values, head by head: q and out have `d` bytes, a head `head` bytes; `scores` is room
  ;; for `count` numbers and three more.
  (func (export "attend")
    (param $q i32) (param $keys i32) (param $values i32) (param $count i32) (param $d i32) (param $head i32)
    (param $scale f32) (param $scores i32) (param $out i32)
    (local $h i32) (local $end i32) (local $at i32) (local $top v128) (local $total v128) (local $share v128)
    (local $j i32) (local $v i32) (local $sum v128) (local $p v128)
    (local $b v128) (local $c v128) (local $e v128) (local $to i32)
    (local.set $end (i32.add (local.get $scores) (i32.shl (local.get $count) (i32.const 2))))
    (loop $heads
      (local.set $top
        (f32x4.splat
          (call $dots
            (i32.add (local.get $q) (local.get $h)) (i32.add (local.get $keys) (local.get $h))
            (local.get $count) (local.get $d) (local.get $head) (local.get $scale) (local.get $scores))))
      ;; What lies behind the last score becomes next to nothing.
      (v128.store (local.get $end) (v128.const f32x4 -1e30 -1e30 -1e30 -1e30))
      (local.set $total (v128.const f32x4 0 0 0 0))
      (local.set $at (local.get $scores))
      (loop $four
        (local.set $p (call $exp (f32x4.sub (v128.load (local.get $at)) (local.get $top))))
        (v128.store (local.get $at) (local.get $p))
        (local.set $total (f32x4.add (local.get $total) (local.get $p)))
        (br_if $four
          (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
      (local.set $share (f32x4.splat (call $lanes (local.get $total))))
      (local.set $j (i32.const 0))
      ;; Sixteen columns at a time while there are so many: a share is read once for all of them.
      (block $few
        (loop $sixteen
          (br_if $few (i32.lt_s (i32.sub (local.get $head) (local.get $j)) (i32.const 64)))
          (local.set $sum (v128.const f32x4 0 0 0 0))
          (local.set $b (v128.const f32x4 0 0 0 0))
          (local.set $c (v128.const f32x4 0 0 0 0))
          (local.set $e (v128.const f32x4 0 0 0 0))
          (local.set $at (local.get $scores))
          (local.set $v (i32.add (local.get $values) (i32.add (local.get $h) (local.get $j))))
          (loop $positions
            (local.set $p (v128.load32_splat (local.get $at)))
            (local.set $sum (f32x4.add (local.get $sum) (f32x4.mul (local.get $p) (v128.load (local.get $v)))))
            (local.set $b (f32x4.add (local.get $b) (f32x4.mul (local.get $p) (v128.load offset=16 (local.get $v)))))
            (local.set $c (f32x4.add (local.get $c) (f32x4.mul (local.get $p) (v128.load offset=32 (local.get $v)))))
            (local.set $e (f32x4.add (local.get $e) (f32x4.mul (local.get $p) (v128.load offset=48 (local.get $v)))))
            (local.set $v (i32.add (local.get $v) (local.get $d)))
            (br_if $positions
              (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (local.get $end))))
          (local.set $to (i32.add (local.get $out) (i32.add (local.get $h) (local.get $j))))
          (v128.store (local.get $to) (f32x4.div (local.get $sum) (local.get $share)))
          (v128.store offset=16 (local.get $to) (f32x4.div (local.get $b) (local.get $share)))
          (v128.store offset=32 (local.get $to) (f32x4.div (local.get $c) (local.get $share)))
          (v128.store offset=48 (local.get $to) (f32x4.div (local.get $e) (local.get $share)))
          (local.set $j (i32.add (local.get $j) (i32.const 64)))
          (br $sixteen)))
      (block $done (loop $columns
        (br_if $done (i32.ge_s (local.get $j) (local.get $head)))
        (local.set $sum (v128.const f32x4 0 0 0 0))
        (local.set $at (local.get $scores))
        (local.set $v (i32.add (local.get $values) (i32.add (local.get $h) (local.get $j))))
        (loop $positions
          (local.set $sum
            (f32x4.add (local.get $sum)
              (f32x4.mul (v128.load32_splat (local.get $at)) (v128.load (local.get $v)))))
          (local.set $v (i32.add (local.get $v) (local.get $d)))
          (br_if $positions
            (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (local.get $end))))
        (v128.store
          (i32.add (local.get $out) (i32.add (local.get $h) (local.get $j)))
          (f32x4.div (local.get $sum) (local.get $share)))
        (local.set $j (i32.add (local.get $j) (i32.const 16)))
        (br $columns)))
      (br_if $heads
        (i32.lt_u (local.tee $h (i32.add (local.get $h) (local.get $head))) (local.get $d)))))
)
