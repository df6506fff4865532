! y(i) = weight (taps(3) x(i) + taps(2) x(i+1) + taps(1) x(i+2)), for n points in single precision: a moving mean.
! Tunable: tile (points that are visited together), unrolled (0 or 1: two points at a time).
subroutine smooth(y, x, taps, weight)
    use iso_c_binding
    implicit none
    real(c_float), intent(out) :: y(n)
    real(c_float), intent(in) :: x(n + 2), taps(3)
    real(c_float), intent(in) :: weight
    integer :: first, last, i

    do first = 1, n, tile
        last = min(first + tile - 1, n)
#if unrolled
        do i = first, last - 1, 2
            y(i) = weight * (taps(3) * x(i) + taps(2) * x(i + 1) + taps(1) * x(i + 2))
            y(i + 1) = weight * (taps(3) * x(i + 1) + taps(2) * x(i + 2) + taps(1) * x(i + 3))
        end do
        if (mod(last - first, 2) == 0) y(last) = weight * (taps(3) * x(last) + taps(2) * x(last + 1) + taps(1) * x(last + 2))
#else
        do i = first, last
            y(i) = weight * (taps(3) * x(i) + taps(2) * x(i + 1) + taps(1) * x(i + 2))
        end do
#endif
    end do
end subroutine smooth
